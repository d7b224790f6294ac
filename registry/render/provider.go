package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// builders make the arguments of each provider's own client. The keys are what "provider" says in a request or in
// metadata.model.
var builders = map[string]func(*call) (wire.Object, error){
	"openai":       openAI,
	"openai.azure": openAI, // the same client library, made for another endpoint
}

// Providers lists the providers that Kwargs knows, by name.
func Providers() []string { return slices.Sorted(maps.Keys(builders)) }

// family is what providers with the same models and parameters have in common.
func family(provider string) string {
	switch provider {
	case "openai.azure":
		return "openai"
	case "anthropic.bedrock":
		return "anthropic"
	case "vertexai":
		return "google"
	}
	return provider
}

// kwargsOf makes the arguments for one provider of a filled prompt.
func kwargsOf(provider string, m model, p *prompt, r Call) (json.RawMessage, []string, error) {
	build, ok := builders[provider]
	if !ok {
		return nil, nil, wire.Invalid(wire.FieldError{Field: "provider", Reason: fmt.Sprintf("%q is not one that this version makes llm_kwargs for; it knows %s", shorten(provider), strings.Join(Providers(), ", "))})
	}
	c := call{prompt: *p, provider: provider, model: m.name, apiType: m.apiType}
	overrides := slices.Sorted(maps.Keys(r.Overrides))
	for _, name := range overrides {
		if at := redirecting(name, r.Overrides[name]); at != "" {
			return nil, nil, inexpressible("model_parameter_overrides."+at, redirectsClient)
		}
	}
	c.parameters = slices.Clone(m.parameters)
	for _, name := range overrides {
		c.parameters = set(c.parameters, name, r.Overrides[name])
	}
	if r.Model != "" {
		c.model = r.Model
		c.parameters = without(without(c.parameters, "model"), "modelId")
	}
	kwargs, err := build(&c)
	if err != nil {
		return nil, nil, err
	}
	return encode(kwargs), c.warnings, nil
}
