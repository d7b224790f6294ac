package render

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
)

// model is metadata.model.
type model struct {
	provider, name, apiType string
	parameters              wire.Object
}

// parseModel reads what it can: CheckMetadata came before, when the version was published.
func parseModel(metadata json.RawMessage) model {
	m := member(metadata, "model")
	return model{
		provider:   text(member(m, "provider")),
		name:       text(member(m, "name")),
		apiType:    text(member(m, "api_type")),
		parameters: object(member(m, "parameters")),
	}
}

// chatAPI is the api_type of OpenAI's chat completions, and of its older completions, as clients of the peer spell it.
const chatAPI = "chat-completions"

// normalAPI spells an api_type as clients expect it, who make the name of a function of it. Only those of OpenAI have one.
func normalAPI(provider, apiType string) string {
	if family(provider, "") != "openai" {
		return apiType
	}

	switch apiType {
	case "", "chat.completions", "chat_completions", "completions":
		return chatAPI
	}

	return apiType
}

// completed is the version's metadata with the api_type that it means.
func (m *model) completed(metadata json.RawMessage) json.RawMessage {
	apiType := normalAPI(m.provider, m.apiType)
	if apiType == m.apiType {
		return metadata
	}

	return withModel(metadata, set(object(member(metadata, "model")), "api_type", quoted(apiType)))
}

// withModel is metadata with another model in it.
func withModel(metadata json.RawMessage, m wire.Object) json.RawMessage {
	return encode(set(object(metadata), "model", encode(m)))
}

// Metadata is the version's metadata as the reply to a call tells it: metadata.model is the provider and the model that Kwargs are for,
// each "" for the published one. Where that leaves no model, its name is null.
func (p *Prepared) Metadata(provider, name string) json.RawMessage {
	if provider == "" {
		provider = p.model.provider
	}
	if provider == p.model.provider && (name == "" || name == p.model.name) {
		return p.metadata
	}

	c := call{prompt: *p.prompt, provider: provider}
	c.settle(p.model, name)

	m := wire.Object{memberOf("provider", quoted(provider)), memberOf("name", json.RawMessage("null"))}
	if c.model != "" {
		m = set(m, "name", quoted(c.model))
	}
	if apiType := normalAPI(provider, c.apiType); apiType != "" {
		m = append(m, memberOf("api_type", quoted(apiType)))
	}

	return withModel(p.metadata, append(m, memberOf("parameters", encode(c.parameters))))
}

// CheckMetadata says what is wrong with the metadata of a version that is to be published; absent and null are fine.
// Parameters that would send the app's client elsewhere, or give it credentials, are refused: who may publish a template must
// not be able to redirect the calls of every app that fetches it.
func CheckMetadata(metadata json.RawMessage) []wire.FieldError {
	if isNull(metadata) {
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
			if at := redirecting(p.Name, p.Value); at != "" {
				c.fault("model.parameters."+at, redirectsClient)
			}
		}
	}
	return c.faults
}

const redirectsClient = "would redirect or authenticate the app's client; set it where the app makes its client"

// clientParameters are arguments of the known clients that are about the connection, not about the model, in lower case without
// _ and -.
var clientParameters = map[string]bool{
	"apibase": true, "apikey": true, "apitype": true, "apiversion": true, "authorization": true, "authtoken": true, "azureadtoken": true, "azureadtokenprovider": true,
	"azuredeployment": true, "azureendpoint": true, "baseurl": true, "bearertoken": true, "client": true, "clientoptions": true, "credentials": true,
	"dangerouslyallowbrowser": true, "defaultheaders": true, "defaultquery": true, "endpoint": true, "endpointurl": true, "headers": true, "httpclient": true, "httpheaders": true, "httpoptions": true,
	"organization": true, "project": true, "proxies": true, "proxy": true, "serverurl": true, "token": true, "transport": true, "websocketbaseurl": true,
}

// redirecting is the path of what, in a parameter, would redirect or authenticate the app's client; "" if nothing does. It looks
// into those objects too that clients take as a whole configuration.
func redirecting(parameter string, value json.RawMessage) (path string) {
	name := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(parameter))
	if clientParameters[name] || strings.HasPrefix(name, "extra") || strings.HasPrefix(name, "aws") || strings.HasSuffix(name, "apikey") {
		return parameter
	}
	switch name {
	case "config", "generationconfig", "requestoptions", "options":
		for _, m := range object(value) {
			if at := redirecting(m.Name, m.Value); at != "" {
				return parameter + "." + at
			}
		}
	}
	return ""
}
