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
	"openai":            openAI,
	"openai.azure":      openAI, // the same client library, made for another endpoint
	"anthropic":         anthropic,
	"anthropic.bedrock": anthropic, // likewise
	"google":            google,
	"vertexai":          google,
	"mistral":           mistral,
	"amazon.bedrock":    bedrock,
	"cohere":            cohere,
}

// Providers lists the providers that Kwargs knows, by name.
func Providers() []string { return slices.Sorted(maps.Keys(builders)) }

// family is what providers with the same models and parameters have in common.
func family(provider, model string) string {
	switch provider {
	case "openai.azure":
		return "openai"
	case "anthropic.bedrock":
		return "anthropic"
	case "google", "vertexai":
		if strings.HasPrefix(model, "claude") {
			return "anthropic"
		}
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
	overrides := slices.Sorted(maps.Keys(r.Overrides))
	for _, name := range overrides {
		if at := redirecting(name, r.Overrides[name]); at != "" {
			return nil, nil, inexpressible("model_parameter_overrides."+at, redirectsClient)
		}
	}
	c := call{prompt: *p, provider: provider}
	c.settle(m, r.Model)
	for _, name := range overrides {
		c.parameters = set(c.parameters, name, r.Overrides[name])
	}
	c.parameters, _ = spell(c.api(), c.parameters, false)
	if r.Model != "" {
		c.parameters = without(without(c.parameters, "model"), "modelId")
	}
	kwargs, err := build(&c)
	if err != nil {
		return nil, nil, err
	}
	return encode(kwargs), c.warnings, nil
}

// settle decides on the model and takes over the published parameters. If those were meant for another provider's models, their
// model is left out, and so is what the provider asked for does not have.
func (c *call) settle(m model, asked string) {
	c.model, c.apiType, c.parameters = m.name, m.apiType, slices.Clone(m.parameters)
	if asked != "" {
		c.model = asked
	}
	c.family = family(c.provider, c.model)
	elsewhere := c.provider == "google" && family(m.provider, "") == "anthropic" && asked == "" // the Gemini API has no Claude
	if m.provider == "" || family(m.provider, m.name) == c.family && !elsewhere {
		return
	}
	c.apiType = ""
	if asked == "" {
		c.model, c.family = "", family(c.provider, "")
		if m.name != "" {
			c.warn("The model %s is %s's, and is left out; give one of %s's as model.", shorten(m.name), shorten(m.provider), c.provider)
		}
	}
	var left []string
	c.parameters, left = spell(c.api(), c.parameters, true)
	if len(left) > 0 {
		c.warn("These parameters are %s's, and are left out: %s.", shorten(m.provider), shorten(strings.Join(left, ", ")))
	}
}

// api is whose spelling of parameters is asked for.
func (c *call) api() string {
	switch {
	case c.family == "openai" && c.apiType == "responses":
		return "responses"
	case c.family == "openai" && !c.chat:
		return "text"
	}
	return c.family
}
