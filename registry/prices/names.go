package prices

import (
	"regexp"
	"strings"
)

// ending matches what calls add to the name of a model: variants at the same price, of Claude Code and
// of OpenRouter; the version of a Bedrock model; a date in the spellings of the providers (-2024-08-06,
// -20250514, @20250514); Gemini's -001; aliases of the newest.
var ending = regexp.MustCompile(`(\[1m\]|:beta|-v\d+(:\d+)?(:\d+k)?|:\d+|[-@]20\d\d-?\d\d-?\d\d|` +
	`-(preview|exp)-\d\d-\d\d(-?\d{4})?|-preview-\d\d-20\d\d|-0\d\d|[-@](latest|default))$`)

// variant matches the name of a model that was fine-tuned, ft:gpt-4o-2024-08-06:organization::id, and
// of a Claude that thinks. Those of others that think have another price.
var variant = regexp.MustCompile(`^(ft:[^:]*):.*|^(claude-.*):thinking$`)

// residence matches a path that promises where data stays, at a surcharge: azure/eu/gpt-4o.
var residence = regexp.MustCompile(`^(azure/)?(us|eu)/|/us-gov-`)

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

	// A cloud's path, or a gateway's provider/model.
	if at := strings.LastIndexByte(model, '/'); at >= 0 {
		// The community's file may list the whole path; our
		// own table has the model alone.
		names = append(names, model)
		if residence.MatchString(model) {
			return names
		}
		model = model[at+1:]
	}
	model = variant.ReplaceAllString(model, "$1$2")

	for {
		add(model)
		if bare := regions.ReplaceAllString(model, ""); strings.Contains(bare, ".") {
			add("regional." + bare)
			if bare != model {
				add(bare)
			}
		}

		shorter := ending.ReplaceAllString(model, "")
		if shorter == model || shorter == "" {
			return names
		}
		model = shorter
	}
}
