package calls

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// The peer's blueprint of a call, in a form that belongs to no provider. Unknown members are
// present and empty, because clients look for them.
type (
	blueprint struct {
		Template            blueprintTemplate `json:"prompt_template"`
		CommitMessage       *string           `json:"commit_message"`
		Metadata            blueprintMetadata `json:"metadata"`
		ProviderBaseURLName *string           `json:"provider_base_url_name"`
		ReportID            *int64            `json:"report_id"`
		Client              *string           `json:"inference_client_name"`
	}
	blueprintTemplate struct {
		Type           string             `json:"type"`
		Messages       []blueprintMessage `json:"messages"`
		Functions      []json.RawMessage  `json:"functions"`
		Tools          []json.RawMessage  `json:"tools"`
		FunctionCall   *string            `json:"function_call"`
		ToolChoice     *string            `json:"tool_choice"`
		InputVariables []string           `json:"input_variables"`
	}
	blueprintMessage struct {
		Role       string          `json:"role"`
		Language   string          `json:"template_format,omitempty"`
		Name       string          `json:"name,omitempty"`
		Content    []blueprintPart `json:"content"`
		ToolCalls  []blueprintCall `json:"tool_calls,omitempty"`
		ToolCallID string          `json:"tool_call_id,omitempty"`
	}
	blueprintPart struct {
		Type     string         `json:"type"`
		Text     *string        `json:"text,omitempty"`
		Thinking *string        `json:"thinking,omitempty"`
		ImageURL *blueprintLink `json:"image_url,omitempty"`
		Media    *blueprintLink `json:"media,omitempty"`
		Name     string         `json:"name,omitempty"`
	}
	blueprintLink struct {
		Title string `json:"title,omitempty"`
		Type  string `json:"type,omitempty"`
		URL   string `json:"url"`
	}
	blueprintCall struct {
		ID       string            `json:"id"`
		Type     string            `json:"type"`
		Function blueprintFunction `json:"function"`
	}
	blueprintFunction struct {
		Arguments string `json:"arguments"`
		Name      string `json:"name"`
	}
	blueprintMetadata struct {
		Model blueprintModel `json:"model"`
	}
	blueprintModel struct {
		Provider   string                     `json:"provider"`
		Name       string                     `json:"name"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
)

// Blueprint returns what went into a call that was read from object, as a blueprint.
func Blueprint(call *Call, provider string, object wire.Object) json.RawMessage {
	// It holds JSON that was parsed already, which always can be written.
	text, _ := jsonscan.Marshal(blueprintOf(call, provider, object))
	return text
}

// Messages returns messages as those of a blueprint; nil if there are none.
func Messages(all []Message) json.RawMessage {
	if len(all) == 0 {
		return nil
	}
	// As in Blueprint, it can always be written.
	text, _ := jsonscan.Marshal(blueprintsOf(all))

	return text
}

// ReplyBlueprint returns the blueprint of a track-request: what went in, then the
// answer. It is nil if body is not an object. It does not alias body, and takes a few
// times its memory.
func ReplyBlueprint(body json.RawMessage) json.RawMessage {
	object, err := wire.ParseObject(body)
	if err != nil {
		return nil
	}

	// Faulty fields are missing.
	w, _ := wire.DecodeRequest(object, false, time.Time{})
	call := ReadObject(context.Background(), object)
	call.Input = append(call.Input, call.Output...)

	return Blueprint(&call, Provider(w), object)
}

// blueprintOf returns the blueprint of a call that was read from object. Its parameters
// are only those arguments that are numbers, true or false: texts may be secrets, and the
// request has everything as it was sent.
func blueprintOf(call *Call, provider string, object wire.Object) blueprint {
	b := blueprint{
		Template: blueprintTemplate{
			Type:           "chat",
			Messages:       blueprintsOf(call.Input),
			Functions:      []json.RawMessage{},
			Tools:          []json.RawMessage{},
			InputVariables: []string{},
		},
		Metadata: blueprintMetadata{blueprintModel{provider, call.Model, map[string]json.RawMessage{}}},
	}

	b.readArguments(argumentsOf(object))

	return b
}

// parametersMax is how many parameters a blueprint has at most, and tools; no provider knows as many.
const parametersMax = 1000

// readArguments takes the parameters and the tools from arguments.
func (b *blueprint) readArguments(arguments node) {
	if !arguments.isObject() {
		return
	}

	parameters := b.Metadata.Model.Parameters
	for m := range jsonscan.Members(arguments.raw) {
		value := nodeOf(m.Value)
		switch {
		case m.Name == "tools" && value.isArray():
			eachTool(value, b.tool)
		case m.Name == "toolConfig" || groups[m.Name]:
			eachTool(value.at("tools"), b.tool)
		case value.isScalar() && len(parameters) < parametersMax:
			parameters[m.Name] = value.raw
		}
	}
}

// tool adds a tool: a function, or one that the provider itself runs, whose config is what was sent.
func (b *blueprint) tool(n node) {
	f := toolOf(n)
	if len(b.Template.Tools) == parametersMax || !f.isObject() {
		return
	}

	schema := f.first("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
	name, kind := f.texts("name"), n.texts("type")
	for member := range n.names {
		// Google's have no type.
		kind = cmp.Or(kind, name, string(member))
	}
	tool := map[string]any{
		"type": kind, "name": cmp.Or(name, kind), "provider": b.Metadata.Model.Provider, "config": n.raw,
	}
	if name != "" && (schema.exists() || kind == name || kind == "function") {
		tool = map[string]any{"type": "function", "function": functionOf(f, schema)}
	}
	// As in Blueprint, it can always be written.
	text, _ := jsonscan.Marshal(tool)
	b.Template.Tools = append(b.Template.Tools, text)
}

// googleType is a type in Google's form of JSON schemas.
var googleType = regexp.MustCompile(`"type"\s*:\s*"[A-Z]+"`)

// functionOf returns a function in OpenAI's form.
func functionOf(f, schema node) map[string]any {
	function := map[string]any{}
	for _, member := range []string{"name", "description", "strict"} {
		if v := f.at(member); v.exists() {
			function[member] = v.raw
		}
	}
	// Bedrock has it within json.
	schema = schema.at("json").or(schema)
	if schema.exists() {
		function["parameters"] = json.RawMessage(googleType.ReplaceAllFunc(schema.raw, bytes.ToLower))
	}

	return function
}

func blueprintsOf(all []Message) []blueprintMessage {
	messages := []blueprintMessage{}
	files := map[string]int{}
	called, answered := 0, 0
	for i := range all {
		b := all[i].blueprint(files)
		// Gemini's calls have no ids: their results follow them in order.
		for j := range b.ToolCalls {
			if call := &b.ToolCalls[j]; call.ID == "" {
				called++
				call.ID = fmt.Sprintf("call_%d", called)
			}
		}
		if b.Role == "tool" && b.ToolCallID == "" {
			answered++
			b.ToolCallID = fmt.Sprintf("call_%d", answered)
		}
		messages = append(messages, b)
	}

	return messages
}

// blueprint returns the message in the blueprint's form. files counts the variables that stand for files
// by their names, of which no two may be the same.
func (m *Message) blueprint(files map[string]int) blueprintMessage {
	b := blueprintMessage{
		Role:       m.Role,
		Name:       m.Name,
		Content:    []blueprintPart{},
		ToolCallID: m.ToolCallID,
	}
	for _, p := range m.Parts {
		// A blueprint is a template, in which braces would be a variable's.
		if strings.ContainsAny(p.Text, "{}") {
			b.Language = "none"
		}
		b.Content = append(b.Content, p.blueprint(files))
	}
	for _, c := range m.ToolCalls {
		// OpenAI's form, which the peer's clients read for every provider.
		function := blueprintFunction{c.Arguments, c.Name}
		b.ToolCalls = append(b.ToolCalls, blueprintCall{c.ID, "function", function})
	}

	return b
}

// blueprint returns the part in the blueprint's form. Of media it shows no bytes, which the request has:
// a variable stands for them, and rendering says that it was not given.
func (p *Part) blueprint(files map[string]int) blueprintPart {
	f := fileOf(nodeOf(p.Media).indexed())
	switch {
	case p.Kind == PartThinking:
		return blueprintPart{Type: "thinking", Thinking: &p.Text}
	case p.Kind != PartMedia:
		return blueprintPart{Type: "text", Text: &p.Text}
	case f.url == "":
		name := cmp.Or(p.Name, p.Text)
		files[name]++
		if n := files[name]; n > 1 {
			name = fmt.Sprintf("%s %d", name, n)
		}
		return blueprintPart{Type: "media_variable", Name: name}
	case f.mime == "" && p.Name == "" || strings.HasPrefix(f.mime, "image/"):
		return blueprintPart{Type: "image_url", ImageURL: &blueprintLink{URL: f.url}}
	}

	return blueprintPart{Type: "media", Media: &blueprintLink{p.Name, f.mime, f.url}}
}
