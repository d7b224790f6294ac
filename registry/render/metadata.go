package render

import (
	"encoding/json"
	"slices"
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
			if redirects(p.Name) {
				c.fault("model.parameters."+p.Name, "would redirect or authenticate the app's client; set it where the app makes its client")
			}
		}
	}
	return c.faults
}

// clientParameters are arguments of the known clients that are about the connection, not about the model.
var clientParameters = []string{
	"api_base", "api_key", "api_type", "api_version", "authorization", "azure_ad_token", "azure_deployment", "azure_endpoint", "base_url",
	"client", "client_options", "credentials", "default_headers", "default_query", "endpoint", "endpoint_url", "headers",
	"http_client", "http_options", "organization", "project", "proxies", "transport", "websocket_base_url",
}

func redirects(parameter string) bool {
	name := strings.ToLower(parameter)
	return slices.Contains(clientParameters, name) || strings.HasPrefix(name, "extra_") || strings.HasPrefix(name, "aws_") || strings.HasSuffix(name, "_api_key")
}
