package provider

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// Model is metadata.model.
type Model struct {
	Provider, Name, APIType string
	Parameters              wire.Object
}

// ParseModel reads what it can: CheckMetadata came before, when the version was published.
func ParseModel(metadata json.RawMessage) Model {
	m := rawjson.Member(metadata, "model")
	return Model{
		Provider:   rawjson.Text(rawjson.Member(m, "provider")),
		Name:       rawjson.Text(rawjson.Member(m, "name")),
		APIType:    rawjson.Text(rawjson.Member(m, "api_type")),
		Parameters: rawjson.Object(rawjson.Member(m, "parameters")),
	}
}

// chatAPI is the api_type of OpenAI's chat completions, and of its older completions, as clients of the peer spell it.
const chatAPI = "chat-completions"

// NormalAPI spells an api_type as clients expect it, who make the name of a function of it. Only those of OpenAI have one.
func NormalAPI(provider, apiType string) string {
	if family(provider, "") != "openai" {
		return apiType
	}

	switch apiType {
	case "", "chat.completions", "chat_completions", "completions":
		return chatAPI
	}

	return apiType
}

// Settle is the model that a call is for, as kwargsOf decides it.
func Settle(provider string, p *prompt.Prompt, m Model, asked string) Model {
	c := call{Prompt: *p, provider: provider}
	c.settle(m, asked)

	return Model{Provider: provider, Name: c.model, APIType: c.apiType, Parameters: c.parameters}
}

const RedirectsClient = "would redirect or authenticate the app's client; set it where the app makes its client"

// clientParameters are arguments of the known clients that are about the connection, not about the model, in lower case without
// _ and -.
var clientParameters = map[string]bool{
	"apibase": true, "apikey": true, "apitype": true, "apiversion": true, "authorization": true, "authtoken": true, "azureadtoken": true, "azureadtokenprovider": true,
	"azuredeployment": true, "azureendpoint": true, "baseurl": true, "bearertoken": true, "client": true, "clientoptions": true, "credentials": true,
	"dangerouslyallowbrowser": true, "defaultheaders": true, "defaultquery": true, "endpoint": true, "endpointurl": true, "headers": true, "httpclient": true, "httpheaders": true, "httpoptions": true,
	"organization": true, "project": true, "proxies": true, "proxy": true, "serverurl": true, "token": true, "transport": true, "websocketbaseurl": true,
}

// Redirecting is the path of what, in a parameter, would redirect or authenticate the app's client; "" if nothing does. It looks
// into those objects too that clients take as a whole configuration.
func Redirecting(parameter string, value json.RawMessage) (path string) {
	name := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(parameter))
	if clientParameters[name] || strings.HasPrefix(name, "extra") || strings.HasPrefix(name, "aws") || strings.HasSuffix(name, "apikey") {
		return parameter
	}
	switch name {
	case "config", "generationconfig", "requestoptions", "options":
		for _, m := range rawjson.Object(value) {
			if at := Redirecting(m.Name, m.Value); at != "" {
				return parameter + "." + at
			}
		}
	}
	return ""
}
