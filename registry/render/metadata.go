package render

import (
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/registry/render/provider"
	"promptspool/registry/render/rawjson"
)

// completed is the version's metadata with the api_type that it means.
func completed(m *provider.Model, metadata json.RawMessage) json.RawMessage {
	apiType := provider.NormalAPI(m.Provider, m.APIType)
	if apiType == m.APIType {
		return metadata
	}

	return withModel(metadata, rawjson.Set(rawjson.Object(rawjson.Member(metadata, "model")), "api_type", rawjson.Quote(apiType)))
}

// withModel is metadata with another model in it.
func withModel(metadata json.RawMessage, m wire.Object) json.RawMessage {
	return rawjson.Encode(rawjson.Set(rawjson.Object(metadata), "model", rawjson.Encode(m)))
}

// Metadata returns the version's metadata as the reply to a call shows it. metadata.model is
// what Kwargs are made for; "" for the provider or the model means the published one. If that
// leaves no model, its name is null.
func (p *Prepared) Metadata(providerName, modelName string) json.RawMessage {
	if providerName == "" {
		providerName = p.model.Provider
	}
	if providerName == p.model.Provider && (modelName == "" || modelName == p.model.Name) {
		return p.metadata
	}

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

	return withModel(p.metadata, append(m, rawjson.MemberOf("parameters", rawjson.Encode(settled.Parameters))))
}

// CheckMetadata says what is wrong with the metadata of a version that is to be published; absent and null are fine.
// Parameters that would send the app's client elsewhere, or give it credentials, are refused: who may publish a template must
// not be able to redirect the calls of every app that fetches it.
func CheckMetadata(metadata json.RawMessage) []wire.FieldError {
	if rawjson.IsNull(metadata) {
		return nil
	}
	c := &checker{}
	top, ok := c.object("", metadata)
	if !ok {
		return c.faults
	}
	raw, ok := top.Get("model")
	if !ok {
		return nil
	}
	m, ok := c.object("model", raw)
	if !ok {
		return c.faults
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
	return c.faults
}
