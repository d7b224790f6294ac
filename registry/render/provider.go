package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// Call is what llm_kwargs are made from.
type Call struct {
	Blueprint json.RawMessage            // as Fill returned it
	Metadata  json.RawMessage            // the version's: an object, null or nil
	Model     string                     // wins over metadata.model.name; "" if the request had none
	Overrides map[string]json.RawMessage // win over metadata.model.parameters
}

// providers makes the arguments of each provider's own client. The keys are what "provider" says in a request or in
// metadata.model.
var providers = map[string]func(call) (wire.Object, error){
	"openai":       openAI,
	"openai.azure": openAI, // the same client library, made for another endpoint
}

// call is a Call taken apart.
type call struct {
	blueprint wire.Object
	model     model
}

// Kwargs makes the arguments with which the provider's own client is called. Its errors are wire.CodeInvalid: a provider that this
// version does not know, or something in the blueprint that the provider cannot express. What it makes has the
// members in a fixed order: those of the provider's documentation, then parameters in theirs, then overrides by name.
func Kwargs(provider string, c Call) (json.RawMessage, error) {
	build, ok := providers[provider]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(providers)), ", ")
		return nil, wire.Invalid(wire.FieldError{Field: "provider", Reason: fmt.Sprintf("%q is not one that this version makes llm_kwargs for; it knows %s", shorten(provider), known)})
	}
	blueprint, err := wire.ParseObject(c.Blueprint)
	if err != nil {
		return nil, err
	}
	m := parseModel(c.Metadata)
	kwargs, err := build(call{blueprint, m})
	if err != nil {
		return nil, err
	}
	for _, p := range m.parameters {
		kwargs = set(kwargs, p.Name, p.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Overrides)) {
		kwargs = set(kwargs, name, c.Overrides[name])
	}
	if c.Model != "" {
		kwargs = set(kwargs, "model", quoted(c.Model))
	}
	return encode(kwargs), nil
}

// Provider is the provider that a version's metadata names; "" if none.
func Provider(metadata json.RawMessage) string { return parseModel(metadata).provider }
