package calls

import (
	"encoding/json"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// The peer's blueprint of a call: what went in, in a form that belongs to no provider.
type (
	blueprint struct {
		Template blueprintTemplate `json:"prompt_template"`
		Metadata blueprintMetadata `json:"metadata"`
		Client   *string           `json:"inference_client_name"` // always null: unknown
	}
	blueprintTemplate struct {
		Type     string             `json:"type"`
		Messages []blueprintMessage `json:"messages"`
		Tools    json.RawMessage    `json:"tools,omitempty"` // as they were sent
	}
	blueprintMessage struct {
		Role       string          `json:"role"`
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
	}
	blueprintLink struct {
		URL string `json:"url"`
	}
	blueprintCall struct {
		ID       string            `json:"id"`
		Type     string            `json:"type"`
		Function map[string]string `json:"function"`
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

// Blueprint returns the blueprint of a call that was read from object, as JSON.
func Blueprint(call *Call, provider string, object wire.Object) json.RawMessage {
	text, _ := jsonscan.Marshal(blueprintOf(call, provider, object)) // it holds JSON that was parsed already
	return text
}

// blueprintOf returns the blueprint of a call that was read from object. Its parameters
// are only those arguments that are numbers, true or false: texts may be secrets, and the
// request has everything as it was sent.
func blueprintOf(call *Call, provider string, object wire.Object) blueprint {
	b := blueprint{
		Template: blueprintTemplate{Type: "chat", Messages: []blueprintMessage{}},
		Metadata: blueprintMetadata{blueprintModel{provider, call.Model, map[string]json.RawMessage{}}},
	}
	for i := range call.Input {
		b.Template.Messages = append(b.Template.Messages, call.Input[i].blueprint())
	}

	from := "kwargs"
	if wire.IsLog(object) {
		from = "parameters"
	}
	raw, _ := object.Get(from)
	var arguments map[string]json.RawMessage
	if json.Unmarshal(kwargsOf(nodeOf(raw)).raw, &arguments) == nil {
		for name, value := range arguments {
			// By their first byte these are numbers, true or false.
			if strings.ContainsAny(string(value[:1]), "-0123456789tf") {
				b.Metadata.Model.Parameters[name] = value
			}
		}
		if tools := nodeOf(arguments["tools"]); tools.isArray() {
			// As sent: each provider has a form of its own, and a client knows the one
			// that it uses.
			b.Template.Tools = tools.raw
		}
	}

	return b
}

// blueprint returns the message in the blueprint's form.
func (m *Message) blueprint() blueprintMessage {
	b := blueprintMessage{
		Role:       m.Role,
		Name:       m.Name,
		Content:    []blueprintPart{},
		ToolCallID: m.ToolCallID,
	}
	for _, p := range m.Parts {
		b.Content = append(b.Content, p.blueprint())
	}
	for _, c := range m.ToolCalls {
		// OpenAI's form, which the peer's clients read for every provider.
		function := map[string]string{"name": c.Name, "arguments": c.Arguments}
		b.ToolCalls = append(b.ToolCalls, blueprintCall{c.ID, "function", function})
	}

	return b
}

// blueprint returns the part in the blueprint's form. Of media it shows no bytes, which
// the request has.
func (p *Part) blueprint() blueprintPart {
	isURL := strings.HasPrefix(p.Text, "https://") || strings.HasPrefix(p.Text, "http://")
	switch {
	case p.Kind == PartThinking:
		return blueprintPart{Type: "thinking", Thinking: &p.Text}
	case p.Kind == PartMedia && isURL:
		return blueprintPart{Type: "image_url", ImageURL: &blueprintLink{p.Text}}
	case p.Kind == PartMedia:
		name := "[" + p.Text + "]"
		return blueprintPart{Type: "text", Text: &name}
	}

	return blueprintPart{Type: "text", Text: &p.Text}
}
