package provider

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// google makes the arguments for Gemini on the Gemini API and on Vertex AI. A Claude on
// Vertex AI takes Anthropic's.
func google(c *call) wire.Object {
	if c.family == "anthropic" {
		return anthropic(c)
	}

	return gemini(c)
}

// gemini makes {model, history, generation_config}, from which a chat of Google's own
// clients is made. All of history except its last item goes into chats.create, with
// generation_config as its config; the last item is the message to send. A completion is
// {model, contents, generation_config}.
//
// Their content is "GenerateContentRequest" of the Gemini API
// (https://ai.google.dev/api/generate-content) and of Vertex AI
// (https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentRequest),
// in snake case.
func gemini(c *call) wire.Object {
	kwargs := c.newKwargs("model")
	config := c.geminiConfig()
	if !c.Chat {
		m := prompt.Message{Role: "user", At: "prompt_template", Content: c.Content}
		parts := eachBlock(&m, c.geminiPart)
		contents := turnsJSON([]turn{{"user", parts}}, "parts")

		return append(kwargs,
			rawjson.MemberOf("contents", contents),
			rawjson.MemberOf("generation_config", rawjson.Encode(config)))
	}

	system := c.system(bareText)
	if len(system) > 0 {
		config = rawjson.Set(config, "system_instruction", rawjson.Form(`{"parts":$}`, rawjson.Array(system)))
	}

	config = c.geminiTools(config)
	turns := c.turns(dialect{c.geminiPart, geminiCall, c.geminiResult})
	for i := range turns {
		// Gemini's word for the assistant.
		if turns[i].role == "assistant" {
			turns[i].role = "model"
		}
	}

	return append(kwargs,
		rawjson.MemberOf("history", turnsJSON(turns, "parts")),
		rawjson.MemberOf("generation_config", rawjson.Encode(config)))
}

// geminiConfig collects the parameters. Those that were published as a whole
// configuration are part of it.
func (c *call) geminiConfig() (config wire.Object) {
	for _, p := range c.parameters {
		if p.Name == "generation_config" || p.Name == "generationConfig" {
			config = rawjson.Merge(config, rawjson.Object(p.Value))
			continue
		}
		config = rawjson.Set(config, p.Name, p.Value)
	}
	c.parameters = nil

	return config
}

func geminiCall(call prompt.ToolCall, args json.RawMessage) json.RawMessage {
	return rawjson.Form(`{"function_call":{"name":$,"args":$}}`, call.Name, args)
}

// geminiResult writes the result of a function. It must be an object; anything else
// becomes its member output.
func (c *call) geminiResult(m *prompt.Message) json.RawMessage {
	result := c.messageText(m)
	name := c.calledName(m)
	if name == "" {
		return c.reject(m.At, "gives the result of the call %q, which no message makes; "+
			"%s needs the call, or the function's name as name", language.Shorten(m.ToolCallID), c.provider)
	}

	// Whatever is not an object is wrapped.
	response := rawjson.Form(`{"output":$}`, result)
	if o, err := wire.ParseObject([]byte(result)); err == nil {
		response = rawjson.Encode(o)
	}

	return rawjson.Form(`{"function_response":{"name":$,"response":$}}`, name, response)
}

// geminiPart writes one part of a message; nil for an empty text.
func (c *call) geminiPart(_ *prompt.Message, b *prompt.Block) json.RawMessage {
	switch b.Kind {
	case "text":
		if b.Text == "" {
			return nil
		}
		return rawjson.NewObject().
			Str("text", b.Text).
			Some("thought_signature", b.StringMember("thought_signature")).
			End()
	case "thinking":
		return rawjson.NewObject().
			Str("text", b.StringMember("thinking")).
			Raw("thought", json.RawMessage("true")).
			Some("thought_signature", b.StringMember("signature")).
			End()
	case "code":
		code := b.StringMember("code")
		return rawjson.Form(`{"executable_code":{"language":"PYTHON","code":$}}`, code)
	case "code_execution_result":
		outcome := cmp.Or(b.StringMember("outcome"), "OUTCOME_OK")
		return rawjson.Form(`{"code_execution_result":{"outcome":$,"output":$}}`,
			outcome, b.StringMember("output"))
	case "image_url", "media":
		return geminiFile(fileOf(b))
	}

	return c.cannotHold(b, "a message; take it out")
}

func geminiFile(f file) json.RawMessage {
	if f.data != "" {
		return rawjson.Form(`{"inline_data":{"mime_type":$,"data":$}}`, f.dataType(), f.data)
	}

	data := rawjson.NewObject().Str("file_uri", f.url).Some("mime_type", f.mime)
	return rawjson.Form(`{"file_data":$}`, data.End())
}

// geminiBuiltIns are the tools that Google runs.
var geminiBuiltIns = map[string]string{
	"web_search":       "google_search",
	"code_interpreter": "code_execution",
	"url_context":      "url_context",
	"google_maps":      "google_maps",
	"file_search":      "file_search",
}

var geminiChoices = choices{
	"auto":     `{"function_calling_config":{"mode":"AUTO"}}`,
	"none":     `{"function_calling_config":{"mode":"NONE"}}`,
	"required": `{"function_calling_config":{"mode":"ANY"}}`,
	"function": `{"function_calling_config":{"mode":"ANY","allowed_function_names":[$]}}`,
}

// geminiTools adds to the configuration the tools, and which of them the model must call.
func (c *call) geminiTools(config wire.Object) wire.Object {
	var declared, tools []json.RawMessage
	for _, t := range c.Tools {
		if t.Kind == "function" {
			declared = append(declared, geminiFunction(t))
			continue
		}

		own := c.builtIn(t)
		name, ok := geminiBuiltIns[t.Kind]
		if !ok {
			c.reject(t.At, "is %q, which %s does not have; take it out", language.Shorten(t.Kind), c.provider)
		}
		tools = append(tools, rawjson.NewObject().Raw(name, rawjson.Encode(own)).End())
	}

	// All functions are one tool, which comes first.
	if declared != nil {
		functions := rawjson.Form(`{"function_declarations":$}`, rawjson.Array(declared))
		tools = append([]json.RawMessage{functions}, tools...)
	}
	if tools == nil {
		return config
	}
	config = rawjson.Set(config, "tools", rawjson.Array(tools))

	if choice := c.choice(geminiChoices); choice != nil {
		config = rawjson.Set(config, "tool_config", choice)
	}

	return config
}

// geminiFunction declares a function. Parameters that keep to Gemini's own Schema are
// written as such, because every client knows that; others as a JSON schema, under the
// name that newer clients have for it.
func geminiFunction(t prompt.Tool) json.RawMessage {
	out := rawjson.NewObject().Str("name", t.Name).Some("description", t.Description)
	switch {
	case t.Parameters == nil:
	case isGeminiSchema(t.Parameters):
		// Gemini rejects an object without properties.
		if properties := rawjson.Object(rawjson.Member(t.Parameters, "properties")); len(properties) > 0 {
			out = out.Raw("parameters", t.Parameters)
		}
	default:
		out = out.Raw("parametersJsonSchema", t.Parameters)
	}

	return out.End()
}

// geminiSchema lists the members of "Schema" (https://ai.google.dev/api/caching#Schema)
// that hold no schema themselves.
var geminiSchema = strings.Fields(`
	default description enum example format maxItems maxLength maxProperties maximum minItems minLength
	minProperties minimum nullable pattern propertyOrdering required title`)

// isGeminiSchema reports whether a JSON schema is also a Schema of Gemini's.
func isGeminiSchema(schema json.RawMessage) bool {
	o := rawjson.Object(schema)
	// One member that Gemini does not know makes it reject the whole request.
	isOther := func(m rawjson.NamedValue) bool { return !isGeminiMember(m.Name, m.Value) }
	return o != nil && !slices.ContainsFunc(o, isOther)
}

func isGeminiMember(name string, value json.RawMessage) bool {
	switch name {
	// JSON Schema allows a list of types here, and Gemini one only.
	case "type":
		return value[0] == '"'
	case "items":
		return isGeminiSchema(value)
	case "properties":
		isOther := func(p rawjson.NamedValue) bool { return !isGeminiSchema(p.Value) }
		return !slices.ContainsFunc(rawjson.Object(value), isOther)
	case "anyOf":
		isOther := func(e json.RawMessage) bool { return !isGeminiSchema(e) }
		return !slices.ContainsFunc(rawjson.Elements(value), isOther)
	}

	return slices.Contains(geminiSchema, name)
}
