// Package provider makes the arguments of a model call (llm_kwargs) from a filled prompt,
// one file for each provider's own client. It is pure; a prompt that a provider cannot
// express is rejected with the path of what does not fit.
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

// builders make the arguments of each provider's own client, but for the parameters. These win over
// what was built; a builder that puts them elsewhere leaves none. The keys are what "provider"
// says in a request or in metadata.model.
var builders = map[string]func(*call) (wire.Object, error){
	"openai":            openAI,
	"openai.azure":      openAI, // the same client library, made for another endpoint
	"anthropic":         anthropic,
	"anthropic.bedrock": anthropic,
	"google":            google,
	"vertexai":          google,
	"mistral":           mistral,
	"amazon.bedrock":    bedrock,
	"cohere":            cohere,
}

// Known reports whether llm_kwargs can be made for a provider.
func Known(provider string) bool { return builders[provider] != nil }

// Names lists the known providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(builders)) }

// family returns what providers with the same models and parameters have in common.
func family(provider, model string) string {
	switch provider {
	case "openai.azure":
		return "openai"
	case "anthropic.bedrock":
		return "anthropic"
	case "google", "vertexai":
		// Vertex AI has Claude as well, which takes Anthropic's arguments.
		if strings.HasPrefix(model, "claude") {
			return "anthropic"
		}
		return "google"
	}

	return provider
}

// Kwargs makes the arguments of a provider's client from a filled prompt. model, if not
// "", and overrides win over what m says. The strings are warnings.
func Kwargs(
	provider string, m Model, p *prompt.Prompt, model string, overrides map[string]json.RawMessage,
) (json.RawMessage, []string, error) {
	build, ok := builders[provider]
	if !ok {
		return nil, nil, wire.Invalid(wire.FieldError{
			Field: "provider",
			Reason: fmt.Sprintf("%q is not one that this version makes llm_kwargs for; it knows %s",
				language.Shorten(provider), strings.Join(Names(), ", ")),
		})
	}
	// Sorted, so that the same call gives the same bytes.
	names := slices.Sorted(maps.Keys(overrides))
	for _, name := range names {
		if at := Redirecting(name, overrides[name]); at != "" {
			return nil, nil, cannotExpress("model_parameter_overrides."+at, RedirectsClient)
		}
	}

	c := call{Prompt: *p, provider: provider}
	c.settle(m, model)
	for _, name := range names {
		c.parameters = rawjson.Set(c.parameters, name, overrides[name])
	}
	// Overrides may be spelled for another provider, too.
	c.parameters, _ = spell(c.api(), c.parameters, false)
	// A parameter must not win over the model that the caller asked for.
	if model != "" {
		c.parameters = rawjson.Without(rawjson.Without(c.parameters, "model"), "modelId")
	}

	// Only OpenAI still takes functions, the older form of tools.
	if c.family != "openai" || NormalAPI(provider, c.apiType) != chatAPI {
		if err := c.useTools(); err != nil {
			return nil, nil, err
		}
	}
	for b := range p.Blocks {
		if b.IsUnfilled() {
			c.warn("%s was left out: its variable %s was not given.", prompt.Place(b.At), language.Shorten(b.Variable))
		}
	}
	kwargs, err := build(&c)
	if err != nil {
		return nil, nil, err
	}

	return rawjson.Encode(rawjson.Merge(kwargs, c.parameters)), c.warnings, nil
}

// settle decides on the model and takes over the published parameters.
//
// If they were published for another provider's models, that model is left out, and so
// are parameters that the provider does not have. wanted is the model that the caller
// asked for, or "".
func (c *call) settle(m Model, wanted string) {
	c.model, c.apiType, c.parameters = m.Name, m.APIType, slices.Clone(m.Parameters)
	if wanted != "" {
		c.model = wanted
	}
	c.family = family(c.provider, c.model)

	// Vertex AI has Claude, but the Gemini API does not.
	noClaude := c.provider == "google" && family(m.Provider, "") == "anthropic" && wanted == ""
	if m.Provider == "" || family(m.Provider, m.Name) == c.family && !noClaude {
		return
	}

	// One provider's api_type means nothing to another.
	c.apiType = ""
	if wanted == "" {
		c.model, c.family = "", family(c.provider, "")
		if m.Name != "" {
			c.warn("The model %s is %s's, and is left out; give one of %s's as model.",
				language.Shorten(m.Name), language.Shorten(m.Provider), c.provider)
		}
	}

	var left []string
	c.parameters, left = spell(c.api(), c.parameters, true)
	if len(left) > 0 {
		c.warn("These parameters are %s's, and are left out: %s.",
			language.Shorten(m.Provider), language.Shorten(strings.Join(left, ", ")))
	}
}

// api returns whose spelling of parameters applies.
func (c *call) api() string {
	switch {
	case c.family == "openai" && c.apiType == "responses":
		return "responses"
	case c.family == "openai" && !c.Chat:
		return "text"
	}

	return c.family
}
