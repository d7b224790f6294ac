package prices

import (
	"regexp"
	"strings"
)

// endings match what calls add to the name of a model: the version of a Bedrock model, a
// date in the spellings of the providers (-2024-08-06, -20250514, @20250514), Gemini's
// -001, aliases of the newest, and variants at the same price: of Claude Code and of OpenRouter.
var endings = []*regexp.Regexp{
	regexp.MustCompile(`\[1m\]$|:(thinking|beta)$`),
	regexp.MustCompile(`-v\d+(:\d+)?(:\d+k)?$|:\d+$`),
	regexp.MustCompile(`[-@]20\d\d-?\d\d-?\d\d$`),
	regexp.MustCompile(`-(preview|exp)-\d\d-\d\d(-?\d{4})?$|-preview-\d\d-20\d\d$`),
	regexp.MustCompile(`-0\d\d$`),
	regexp.MustCompile(`[-@](latest|default)$`),
}

// regions matches the area that an inference profile of Bedrock names. A model without
// one runs in the region that is called, at the same price.
var regions = regexp.MustCompile(`^(us|eu|apac|au|jp|ca|us-gov)\.`)

// communityProviders maps our callers' names of providers to those in the community's
// file.
var communityProviders = map[string]string{
	"openai.azure":   "azure",
	"azureopenai":    "azure",
	"google":         "gemini",
	"vertexai":       "vertex_ai",
	"amazon.bedrock": "bedrock",
	"mistral":        "mistral",
	"mistralai":      "mistral",
	"cohere":         "cohere",
}

// candidates returns the names under which a model's price may be listed, the most exact
// first.
func candidates(provider, model string) []string {
	model = strings.ToLower(strings.TrimSpace(model))
	prefix, hasPrefix := communityProviders[strings.ToLower(provider)]
	var names []string
	add := func(name string) {
		if hasPrefix {
			names = append(names, prefix+"/"+name)
		}
		names = append(names, name)
		// Gateways write claude-3.5-sonnet, and Anthropic a hyphen.
		if strings.HasPrefix(name, "claude-") && strings.Contains(name, ".") {
			names = append(names, strings.ReplaceAll(name, ".", "-"))
		}
	}

	if strings.Contains(model, "/") { // a cloud's path, or a gateway's provider/model
		names = append(names, model)
		// The community's file may list the whole path; our
		// own table has the model alone.
		model = model[strings.LastIndexByte(model, '/')+1:]
	}
	if strings.HasPrefix(model, "ft:") { // ft:gpt-4o-2024-08-06:organization::id
		parts := strings.SplitN(model, ":", 3)
		model = "ft:" + parts[1]
	}

	for {
		add(model)
		if bare := regions.ReplaceAllString(model, ""); strings.Contains(bare, ".") {
			add("regional." + bare)
			if bare != model {
				add(bare)
			}
		}

		shorter := withoutEnding(model)
		if shorter == model || shorter == "" {
			return names
		}
		model = shorter
	}
}

// withoutEnding removes the first of the endings that matches.
func withoutEnding(model string) string {
	for _, ending := range endings {
		if shorter := ending.ReplaceAllString(model, ""); shorter != model {
			return shorter
		}
	}

	return model
}
