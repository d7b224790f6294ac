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
	"defaultheaders": true, "defaultquery": true, "endpoint": true, "endpointurl": true, "headers": true, "httpclient": true, "httpheaders": true, "httpoptions": true,
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
