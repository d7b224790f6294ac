package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// providers make the arguments of each provider's own client. The keys are what "provider" says in a request or in
// metadata.model.
var providers = map[string]func(*call) (wire.Object, error){
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

// Known reports whether llm_kwargs can be made for a provider.
func Known(provider string) bool { return providers[provider] != nil }

// Names lists the providers that Kwargs knows, by name.
func Names() []string { return slices.Sorted(maps.Keys(providers)) }

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

// Kwargs makes the arguments for one provider of a filled prompt.
func Kwargs(provider string, m Model, p *prompt.Prompt, asked string, overrides map[string]json.RawMessage) (json.RawMessage, []string, error) {
	build, ok := providers[provider]
	if !ok {
		return nil, nil, wire.Invalid(wire.FieldError{Field: "provider", Reason: fmt.Sprintf("%q is not one that this version makes llm_kwargs for; it knows %s", language.Shorten(provider), strings.Join(Names(), ", "))})
	}
	names := slices.Sorted(maps.Keys(overrides))
	for _, name := range names {
		if at := Redirecting(name, overrides[name]); at != "" {
			return nil, nil, cannotExpress("model_parameter_overrides."+at, RedirectsClient)
		}
	}
	c := call{Prompt: *p, provider: provider}
	c.settle(m, asked)
	for _, name := range names {
		c.parameters = rawjson.Set(c.parameters, name, overrides[name])
	}
	c.parameters, _ = spell(c.api(), c.parameters, false)
	if asked != "" {
		c.parameters = rawjson.Without(rawjson.Without(c.parameters, "model"), "modelId")
	}
	kwargs, err := build(&c)
	if err != nil {
		return nil, nil, err
	}
	return rawjson.Encode(kwargs), c.warnings, nil
}

// settle decides on the model and takes over the published parameters. If those were meant for another provider's models, their
// model is left out, and so is what the provider asked for does not have.
func (c *call) settle(m Model, asked string) {
	c.model, c.apiType, c.parameters = m.Name, m.APIType, slices.Clone(m.Parameters)
	if asked != "" {
		c.model = asked
	}
	c.family = family(c.provider, c.model)
	elsewhere := c.provider == "google" && family(m.Provider, "") == "anthropic" && asked == "" // the Gemini API has no Claude
	if m.Provider == "" || family(m.Provider, m.Name) == c.family && !elsewhere {
		return
	}
	c.apiType = ""
	if asked == "" {
		c.model, c.family = "", family(c.provider, "")
		if m.Name != "" {
			c.warn("The model %s is %s's, and is left out; give one of %s's as model.", language.Shorten(m.Name), language.Shorten(m.Provider), c.provider)
		}
	}
	var left []string
	c.parameters, left = spell(c.api(), c.parameters, true)
	if len(left) > 0 {
		c.warn("These parameters are %s's, and are left out: %s.", language.Shorten(m.Provider), language.Shorten(strings.Join(left, ", ")))
	}
}

// api is whose spelling of parameters is asked for.
func (c *call) api() string {
	switch {
	case c.family == "openai" && c.apiType == "responses":
		return "responses"
	case c.family == "openai" && !c.Chat:
		return "text"
	}
	return c.family
}
