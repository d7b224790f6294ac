package render

import (
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/registry/render/provider"
	"promptspool/registry/render/rawjson"
)

// completed returns the version's metadata with its api_type as clients expect it.
func completed(m *provider.Model, metadata json.RawMessage) json.RawMessage {
	apiType := provider.NormalAPI(m.Provider, m.APIType)
	if apiType == m.APIType {
		return metadata
	}

	model := rawjson.Object(rawjson.Member(metadata, "model"))

	return withModel(metadata, rawjson.Set(model, "api_type", rawjson.Quote(apiType)))
}

// withModel returns metadata with another model.
func withModel(metadata json.RawMessage, m wire.Object) json.RawMessage {
	return rawjson.Encode(rawjson.Set(rawjson.Object(metadata), "model", rawjson.Encode(m)))
}

// Metadata returns the version's metadata as the answer to a call shows it.
// metadata.model is what Kwargs are made for; "" for the provider or the model means the
// published one. If that leaves no model, its name is null.
func (p *Prepared) Metadata(providerName, modelName string) json.RawMessage {
	if providerName == "" {
		providerName = p.model.Provider
	}
	if providerName == p.model.Provider && (modelName == "" || modelName == p.model.Name) {
		return p.metadata
	}

	// The same decision as for llm_kwargs, so that both name one model.
	settled := provider.Settle(providerName, p.prompt, p.model, modelName)
	m := wire.Object{
		rawjson.MemberOf("provider", rawjson.Quote(providerName)),
		rawjson.MemberOf("name", json.RawMessage("null")),
	}
	if settled.Name != "" {
		m = rawjson.Set(m, "name", rawjson.Quote(settled.Name))
	}
	if apiType := provider.NormalAPI(providerName, settled.APIType); apiType != "" {
		m = append(m, rawjson.MemberOf("api_type", rawjson.Quote(apiType)))
	}

	m = append(m, rawjson.MemberOf("parameters", rawjson.Encode(settled.Parameters)))

	return withModel(p.metadata, m)
}

// CheckMetadata validates the metadata of a version before it is published. Absent and
// null are valid.
//
// It rejects parameters that would send the app's client elsewhere, or give it
// credentials: a publisher of templates must not be able to redirect the calls of every
// app that fetches it.
func CheckMetadata(metadata json.RawMessage) []wire.FieldError {
	if rawjson.IsNull(metadata) {
		return nil
	}

	c := &checker{}
	if top, ok := c.object("", metadata); ok {
		if raw, ok := top.Get("model"); ok {
			c.model(raw)
		}
	}

	return c.faults
}

func (c *checker) model(raw json.RawMessage) {
	m, ok := c.object("model", raw)
	if !ok {
		return
	}

	for _, name := range []string{"provider", "name", "api_type"} {
		c.text("model."+name, m, name, false)
	}
	if raw, ok := m.Get("parameters"); ok {
		parameters, _ := c.object("model.parameters", raw)
		for _, p := range parameters {
			if at := provider.Redirecting(p.Name, p.Value); at != "" {
				c.fault("model.parameters."+at, provider.RedirectsClient)
			}
		}
	}
}
