package provider

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// google makes the arguments for Gemini on the Gemini API and on Vertex AI; a Claude on Vertex AI takes Anthropic's.
func google(c *call) (wire.Object, error) {
	if c.family == "anthropic" {
		return anthropic(c)
	}
	return gemini(c)
}

// gemini makes {model, history, generation_config}, from which a chat of Google's own clients is made: all of history but its
// last item goes into chats.create, with generation_config as its config, and that last item is the message to send. A
// completion is {model, contents, generation_config}. What is in them is as "GenerateContentRequest" of the Gemini API
// (https://ai.google.dev/api/generate-content) and of Vertex AI
// (https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentRequest) have it, in snake case.
func gemini(c *call) (wire.Object, error) {
	kwargs := c.newKwargs("model")
	var config wire.Object
	for _, p := range c.parameters {
		if p.Name == "generation_config" || p.Name == "generationConfig" {
			for _, m := range rawjson.Object(p.Value) {
				config = rawjson.Set(config, m.Name, m.Value)
			}
			continue
		}
		config = rawjson.Set(config, p.Name, p.Value)
	}
	if !c.Chat {
		m := prompt.Message{Role: "user", At: "prompt_template", Content: c.Content}
		_, parts, err := c.geminiMessage(&m)
		if err != nil {
			return nil, err
		}
		contents := turnsJSON([]turn{{"user", parts}}, "parts")
		return append(kwargs, rawjson.MemberOf("contents", contents), rawjson.MemberOf("generation_config", rawjson.Encode(config))), nil
	}
	if err := c.useTools(); err != nil {
		return nil, err
	}
	system, err := c.system()
	if err != nil {
		return nil, err
	}
	if len(system) > 0 {
		parts := make([]json.RawMessage, len(system))
		for i, s := range system {
			parts[i] = rawjson.NewObject().Str("text", s).End()
		}
		config = rawjson.Set(config, "system_instruction", rawjson.NewObject().Raw("parts", rawjson.Array(parts)).End())
	}
	if config, err = c.geminiTools(config); err != nil {
		return nil, err
	}
	turns, err := c.turns(c.geminiMessage)
	if err != nil {
		return nil, err
	}
	return append(kwargs, rawjson.MemberOf("history", turnsJSON(turns, "parts")), rawjson.MemberOf("generation_config", rawjson.Encode(config))), nil
}

func (c *call) geminiMessage(m *prompt.Message) (role string, parts []json.RawMessage, err error) {
	if m.Role == "tool" {
		part, err := c.geminiResult(m)
		return "user", []json.RawMessage{part}, err
	}
	for i := range m.Content {
		part, err := c.geminiPart(&m.Content[i])
		if err != nil {
			return "", nil, err
		}
		if part != nil {
			parts = append(parts, part)
		}
	}
	for _, call := range m.Calls {
		args, err := c.input(m.At, call)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, rawjson.NewObject().Raw("function_call", rawjson.NewObject().Str("name", call.Name).Raw("args", args).End()).End())
	}
	if m.Role == "assistant" {
		return "model", parts, nil
	}
	return "user", parts, nil
}

// geminiResult is the result of a function, which has to be an object: one that is none stands under output.
func (c *call) geminiResult(m *prompt.Message) (json.RawMessage, error) {
	result, err := c.messageText(m)
	if err != nil {
		return nil, err
	}
	name := c.calledName(m)
	if name == "" {
		return nil, cannotExpress(m.At, "gives the result of the call %q, which no message makes; %s needs the call, or the function's name as name", language.Shorten(m.ToolCallID), c.provider)
	}
	response := rawjson.NewObject().Str("output", result).End()
	if o, err := wire.ParseObject([]byte(result)); err == nil {
		response = rawjson.Encode(o)
	}
	return rawjson.NewObject().Raw("function_response", rawjson.NewObject().Str("name", name).Raw("response", response).End()).End(), nil
}

// geminiPart is one part of a message; nil for an empty text.
func (c *call) geminiPart(b *prompt.Block) (json.RawMessage, error) {
	if b.IsUnfilled() {
		return nil, nil
	}
	switch b.Kind {
	case "text":
		if b.Text == "" {
			return nil, nil
		}
		part := rawjson.NewObject().Str("text", b.Text)
		if signature := b.Member("thought_signature"); signature != "" {
			part = part.Str("thought_signature", signature)
		}
		return part.End(), nil
	case "thinking":
		part := rawjson.NewObject().Str("text", b.Member("thinking")).Raw("thought", json.RawMessage("true"))
		if signature := b.Member("signature"); signature != "" {
			part = part.Str("thought_signature", signature)
		}
		return part.End(), nil
	case "code":
		return rawjson.NewObject().Raw("executable_code", rawjson.NewObject().Str("language", "PYTHON").Str("code", b.Member("code")).End()).End(), nil
	case "code_execution_result":
		outcome := b.Member("outcome")
		if outcome == "" {
			outcome = "OUTCOME_OK"
		}
		return rawjson.NewObject().Raw("code_execution_result", rawjson.NewObject().Str("outcome", outcome).Str("output", b.Member("output")).End()).End(), nil
	case "image_url", "media":
	default:
		return nil, c.cannotHold(b, "a message; take it out")
	}
	f := fileOf(b)
	mime := f.mime
	if f.data != "" {
		if mime == "" {
			mime = "image/jpeg"
		}
		return rawjson.NewObject().Raw("inline_data", rawjson.NewObject().Str("mime_type", mime).Str("data", f.data).End()).End(), nil
	}
	data := rawjson.NewObject().Str("file_uri", f.url)
	if mime != "" {
		data = data.Str("mime_type", mime)
	}
	return rawjson.NewObject().Raw("file_data", data.End()).End(), nil
}

// geminiBuiltIns are the tools that Google runs.
var geminiBuiltIns = map[string]string{
	"web_search": "google_search", "code_interpreter": "code_execution", "url_context": "url_context", "google_maps": "google_maps", "file_search": "file_search",
}

// geminiTools puts the tools, and which of them is to be called, into the configuration.
func (c *call) geminiTools(config wire.Object) (wire.Object, error) {
	var declared, tools []json.RawMessage
	for _, t := range c.Tools {
		if t.Kind == "function" {
			declared = append(declared, geminiFunction(t))
			continue
		}
		own, err := c.builtIn(t)
		if err != nil {
			return nil, err
		}
		name, ok := geminiBuiltIns[t.Kind]
		if !ok {
			return nil, cannotExpress(t.At, "is %q, which %s does not have; take it out", language.Shorten(t.Kind), c.provider)
		}
		tools = append(tools, rawjson.NewObject().Raw(name, rawjson.Encode(own)).End())
	}
	if declared != nil {
		tools = append([]json.RawMessage{rawjson.NewObject().Raw("function_declarations", rawjson.Array(declared)).End()}, tools...)
	}
	if tools == nil {
		return config, nil
	}
	config = rawjson.Set(config, "tools", rawjson.Array(tools))
	calling := rawjson.NewObject()
	switch c.Choice.Mode {
	case "":
		return config, nil
	case "auto", "none":
		calling = calling.Str("mode", strings.ToUpper(c.Choice.Mode))
	case "required":
		calling = calling.Str("mode", "ANY")
	case "function":
		calling = calling.Str("mode", "ANY").Raw("allowed_function_names", rawjson.Array([]json.RawMessage{rawjson.Quote(c.Choice.Name)}))
	default:
		return nil, c.noChoice()
	}
	return rawjson.Set(config, "tool_config", rawjson.NewObject().Raw("function_calling_config", calling.End()).End()), nil
}

// geminiFunction declares a function. Its parameters are Gemini's own Schema where they keep to it, for every client knows that;
// else they are a JSON schema, under the name that the newer clients have for one.
func geminiFunction(t prompt.Tool) json.RawMessage {
	out := rawjson.NewObject().Str("name", t.Name)
	if t.Description != "" {
		out = out.Str("description", t.Description)
	}
	switch {
	case t.Parameters == nil:
	case isGeminiSchema(t.Parameters):
		if properties := rawjson.Object(rawjson.Member(t.Parameters, "properties")); len(properties) > 0 { // Gemini refuses an object without properties
			out = out.Raw("parameters", t.Parameters)
		}
	default:
		out = out.Raw("parametersJsonSchema", t.Parameters)
	}
	return out.End()
}

// geminiSchema are the members of "Schema" (https://ai.google.dev/api/caching#Schema) that hold no schema themselves.
var geminiSchema = strings.Fields("default description enum example format maxItems maxLength maxProperties maximum minItems minLength minProperties minimum nullable pattern propertyOrdering required title")

// isGeminiSchema says whether a JSON schema is also a Schema of Gemini's.
func isGeminiSchema(schema json.RawMessage) bool {
	o := rawjson.Object(schema)
	if o == nil {
		return false
	}
	for _, m := range o {
		ok := true
		switch m.Name {
		case "type":
			ok = m.Value[0] == '"'
		case "items":
			ok = isGeminiSchema(m.Value)
		case "properties":
			for _, p := range rawjson.Object(m.Value) {
				ok = ok && isGeminiSchema(p.Value)
			}
		case "anyOf":
			for _, e := range rawjson.Elements(m.Value) {
				ok = ok && isGeminiSchema(e)
			}
		default:
			ok = contains(geminiSchema, m.Name)
		}
		if !ok {
			return false
		}
	}
	return true
}
