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

// ParseModel reads what it can. Publishing a version has checked the rest.
func ParseModel(metadata json.RawMessage) Model {
	m := rawjson.Member(metadata, "model")

	return Model{
		Provider:   rawjson.Text(rawjson.Member(m, "provider")),
		Name:       rawjson.Text(rawjson.Member(m, "name")),
		APIType:    rawjson.Text(rawjson.Member(m, "api_type")),
		Parameters: rawjson.Object(rawjson.Member(m, "parameters")),
	}
}

// chatAPI is the api_type of OpenAI's chat completions, and of its older completions, as
// clients of the peer spell it.
const chatAPI = "chat-completions"

// NormalAPI spells an api_type as clients expect it: they derive the name of a function
// from it. Only OpenAI's are normalised.
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

// Settle returns the model and the parameters that Kwargs would use. model is the one
// that the caller asked for, or "".
func Settle(provider string, p *prompt.Prompt, m Model, model string) Model {
	c := call{Prompt: *p, provider: provider}
	c.settle(m, model)
	return Model{Provider: provider, Name: c.model, APIType: c.apiType, Parameters: c.parameters}
}

// RedirectsClient is the reason why a parameter that Redirecting finds is rejected.
const RedirectsClient = "would redirect or authenticate the app's client; " +
	"set it where the app makes its client"

// clientParameters lists arguments of the known clients that are about the connection,
// not about the model, in lower case without _ and -.
var clientParameters = setOf(`
	apibase apikey apitype apiversion authorization authtoken azureadtoken azureadtokenprovider
	azuredeployment azureendpoint baseurl bearertoken client clientoptions credentials
	dangerouslyallowbrowser defaultheaders defaultquery endpoint endpointurl headers httpclient
	httpheaders httpoptions organization project proxies proxy serverurl token transport
	websocketbaseurl`)

func setOf(words string) map[string]bool {
	set := make(map[string]bool)
	for _, word := range strings.Fields(words) {
		set[word] = true
	}

	return set
}

var withoutSeparators = strings.NewReplacer("_", "", "-", "")

// Redirecting returns the path of what, in a parameter, would redirect or authenticate
// the app's client; "" if nothing does. It also looks into objects that clients take as a
// whole configuration.
func Redirecting(parameter string, value json.RawMessage) (path string) {
	name := withoutSeparators.Replace(strings.ToLower(parameter))
	// extra_headers, extra_body and the like go into the request as they
	// are; aws_* are credentials and endpoints.
	if clientParameters[name] || strings.HasSuffix(name, "apikey") ||
		strings.HasPrefix(name, "extra") || strings.HasPrefix(name, "aws") {
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
