package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/registry/render/rawjson"
)

// geminiSchema lists the members of "Schema" (https://ai.google.dev/api/caching#Schema)
// that hold no schema themselves.
var geminiSchema = strings.Fields(`
	default description enum example format maxItems maxLength maxProperties maximum minItems minLength
	minProperties minimum nullable pattern propertyOrdering required title`)

// isGeminiSchema reports whether a JSON schema is also a Schema of Gemini's.
func isGeminiSchema(schema json.RawMessage) bool {
	o := rawjson.Object(schema)
	if o == nil {
		return false
	}

	for _, m := range o {
		// One member that Gemini does not know makes it reject the whole request.
		if !isGeminiMember(m.Name, m.Value) {
			return false
		}
	}

	return true
}

func isGeminiMember(name string, value json.RawMessage) bool {
	switch name {
	// JSON Schema allows a list of types here, and Gemini one only.
	case "type":
		return value[0] == '"'
	case "items":
		return isGeminiSchema(value)
	case "properties":
		for _, p := range rawjson.Object(value) {
			if !isGeminiSchema(p.Value) {
				return false
			}
		}
		return true
	case "anyOf":
		for _, e := range rawjson.Elements(value) {
			if !isGeminiSchema(e) {
				return false
			}
		}
		return true
	}

	return slices.Contains(geminiSchema, name)
}
