package prices

import (
	"regexp"
	"strings"
)

// What calls add to the name of a model, from the end of it: the version of a Bedrock model, a date in the ways of the
// providers (-2024-08-06, -20250514, @20250514), Gemini's -001, and the aliases of the newest.
var endings = []*regexp.Regexp{
	regexp.MustCompile(`-v\d+(:\d+)?(:\d+k)?$|:\d+$`),
	regexp.MustCompile(`[-@]20\d\d-?\d\d-?\d\d$`),
	regexp.MustCompile(`-(preview|exp)-\d\d-\d\d(-?\d{4})?$|-preview-\d\d-20\d\d$`),
	regexp.MustCompile(`-0\d\d$`),
	regexp.MustCompile(`[-@](latest|default)$`),
}

// regions are the areas that inference profiles of Bedrock name. A model without one runs in the region that is called, at
// the same price.
var regions = regexp.MustCompile(`^(us|eu|apac|au|jp|ca|us-gov)\.`)

// communityProviders are our callers' names of providers in the community's file.
var communityProviders = map[string]string{
	"openai.azure": "azure", "azureopenai": "azure", "google": "gemini", "vertexai": "vertex_ai", "amazon.bedrock": "bedrock",
	"mistral": "mistral", "mistralai": "mistral", "cohere": "cohere",
}

// candidates are the names under which a model's price may stand, the most exact first.
func candidates(provider, model string) []string {
	model = strings.ToLower(strings.TrimSpace(model))
	var names []string
	add := func(name string) {
		if prefix, ok := communityProviders[strings.ToLower(provider)]; ok {
			names = append(names, prefix+"/"+name)
		}
		names = append(names, name)
	}
	if strings.Contains(model, "/") { // a path of a cloud, or a gateway's provider/model
		names = append(names, model)
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
		shorter := model
		for _, ending := range endings {
			if shorter = ending.ReplaceAllString(model, ""); shorter != model {
				break
			}
		}
		if shorter == model || shorter == "" {
			return names
		}
		model = shorter
	}
}
