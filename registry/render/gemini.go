package render

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
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
	kwargs := c.named("model")
	var config wire.Object
	for _, p := range c.parameters {
		if p.Name == "generation_config" || p.Name == "generationConfig" {
			for _, m := range object(p.Value) {
				config = set(config, m.Name, m.Value)
			}
			continue
		}
		config = set(config, p.Name, p.Value)
	}
	if !c.chat {
		m := message{role: "user", at: "prompt_template", content: c.content}
		_, parts, err := c.geminiMessage(&m)
		if err != nil {
			return nil, err
		}
		contents := turnsJSON([]turn{{"user", parts}}, "parts")
		return append(kwargs, memberOf("contents", contents), memberOf("generation_config", encode(config))), nil
	}
	if err := c.modernize(); err != nil {
		return nil, err
	}
	system, err := c.system()
	if err != nil {
		return nil, err
	}
	if len(system) > 0 {
		parts := make([]json.RawMessage, len(system))
		for i, s := range system {
			parts[i] = newObject().str("text", s).end()
		}
		config = set(config, "system_instruction", newObject().raw("parts", array(parts)).end())
	}
	if config, err = c.geminiTools(config); err != nil {
		return nil, err
	}
	turns, err := c.turns(c.geminiMessage)
	if err != nil {
		return nil, err
	}
	return append(kwargs, memberOf("history", turnsJSON(turns, "parts")), memberOf("generation_config", encode(config))), nil
}

func (c *call) geminiMessage(m *message) (role string, parts []json.RawMessage, err error) {
	if m.role == "tool" {
		part, err := c.geminiResult(m)
		return "user", []json.RawMessage{part}, err
	}
	for i := range m.content {
		part, err := c.geminiPart(&m.content[i])
		if err != nil {
			return "", nil, err
		}
		if part != nil {
			parts = append(parts, part)
		}
	}
	for _, call := range m.calls {
		args, err := c.input(m.at, call)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, newObject().raw("function_call", newObject().str("name", call.name).raw("args", args).end()).end())
	}
	if m.role == "assistant" {
		return "model", parts, nil
	}
	return "user", parts, nil
}

// geminiResult is the result of a function, which has to be an object: one that is none stands under output.
func (c *call) geminiResult(m *message) (json.RawMessage, error) {
	result, err := c.textOf(m)
	if err != nil {
		return nil, err
	}
	name := c.calledName(m)
	if name == "" {
		return nil, inexpressible(m.at, "gives the result of the call %q, which no message makes; %s needs the call, or the function's name as name", shorten(m.toolCallID), c.provider)
	}
	response := newObject().str("output", result).end()
	if o, err := wire.ParseObject([]byte(result)); err == nil {
		response = encode(o)
	}
	return newObject().raw("function_response", newObject().str("name", name).raw("response", response).end()).end(), nil
}

// geminiPart is one part of a message; nil for an empty text.
func (c *call) geminiPart(b *block) (json.RawMessage, error) {
	if b.unfilled() {
		return nil, nil
	}
	switch b.kind {
	case "text":
		if b.text == "" {
			return nil, nil
		}
		part := newObject().str("text", b.text)
		if signature := b.member("thought_signature"); signature != "" {
			part = part.str("thought_signature", signature)
		}
		return part.end(), nil
	case "thinking":
		part := newObject().str("text", b.member("thinking")).raw("thought", json.RawMessage("true"))
		if signature := b.member("signature"); signature != "" {
			part = part.str("thought_signature", signature)
		}
		return part.end(), nil
	case "code":
		return newObject().raw("executable_code", newObject().str("language", "PYTHON").str("code", b.member("code")).end()).end(), nil
	case "code_execution_result":
		outcome := b.member("outcome")
		if outcome == "" {
			outcome = "OUTCOME_OK"
		}
		return newObject().raw("code_execution_result", newObject().str("outcome", outcome).str("output", b.member("output")).end()).end(), nil
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
		return newObject().raw("inline_data", newObject().str("mime_type", mime).str("data", f.data).end()).end(), nil
	}
	data := newObject().str("file_uri", f.url)
	if mime != "" {
		data = data.str("mime_type", mime)
	}
	return newObject().raw("file_data", data.end()).end(), nil
}

// geminiBuiltIns are the tools that Google runs.
var geminiBuiltIns = map[string]string{
	"web_search": "google_search", "code_interpreter": "code_execution", "url_context": "url_context", "google_maps": "google_maps", "file_search": "file_search",
}

// geminiTools puts the tools, and which of them is to be called, into the configuration.
func (c *call) geminiTools(config wire.Object) (wire.Object, error) {
	var declared, tools []json.RawMessage
	for _, t := range c.tools {
		if t.kind == "function" {
			declared = append(declared, geminiFunction(t))
			continue
		}
		own, err := c.builtIn(t)
		if err != nil {
			return nil, err
		}
		name, ok := geminiBuiltIns[t.kind]
		if !ok {
			return nil, inexpressible(t.at, "is %q, which %s does not have; take it out", shorten(t.kind), c.provider)
		}
		tools = append(tools, newObject().raw(name, encode(own)).end())
	}
	if declared != nil {
		tools = append([]json.RawMessage{newObject().raw("function_declarations", array(declared)).end()}, tools...)
	}
	if tools == nil {
		return config, nil
	}
	config = set(config, "tools", array(tools))
	calling := newObject()
	switch c.choice.mode {
	case "":
		return config, nil
	case "auto", "none":
		calling = calling.str("mode", strings.ToUpper(c.choice.mode))
	case "required":
		calling = calling.str("mode", "ANY")
	case "function":
		calling = calling.str("mode", "ANY").raw("allowed_function_names", array([]json.RawMessage{quoted(c.choice.name)}))
	default:
		return nil, c.noChoice()
	}
	return set(config, "tool_config", newObject().raw("function_calling_config", calling.end()).end()), nil
}

// geminiFunction declares a function. Its parameters are Gemini's own Schema where they keep to it, for every client knows that;
// else they are a JSON schema, under the name that the newer clients have for one.
func geminiFunction(t tool) json.RawMessage {
	out := newObject().str("name", t.name)
	if t.description != "" {
		out = out.str("description", t.description)
	}
	switch {
	case t.parameters == nil:
	case isGeminiSchema(t.parameters):
		if properties := object(member(t.parameters, "properties")); len(properties) > 0 { // Gemini refuses an object without properties
			out = out.raw("parameters", t.parameters)
		}
	default:
		out = out.raw("parametersJsonSchema", t.parameters)
	}
	return out.end()
}

// geminiSchema are the members of "Schema" (https://ai.google.dev/api/caching#Schema) that hold no schema themselves.
var geminiSchema = strings.Fields("default description enum example format maxItems maxLength maxProperties maximum minItems minLength minProperties minimum nullable pattern propertyOrdering required title")

// isGeminiSchema says whether a JSON schema is also a Schema of Gemini's.
func isGeminiSchema(schema json.RawMessage) bool {
	o := object(schema)
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
			for _, p := range object(m.Value) {
				ok = ok && isGeminiSchema(p.Value)
			}
		case "anyOf":
			for _, e := range elements(m.Value) {
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
