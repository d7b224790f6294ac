package render

import (
	"encoding/json"
	"slices"

	"promptspool/api/wire"
)

// cohere makes the arguments of client.v2.chat of Cohere's own clients, as its API reference has them under "Chat API (v2)"
// (https://docs.cohere.com/reference/chat), in snake case, as the Python client takes them. A completion becomes a message of the
// user.
func cohere(c *call) (wire.Object, error) {
	kwargs := c.named("model")
	if err := c.modernize(); err != nil {
		return nil, err
	}
	messages, err := c.eachMessage(c.cohereMessage)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("messages", array(messages)))
	kwargs, err = c.cohereTools(kwargs)
	if err != nil {
		return nil, err
	}
	return c.parameterized(kwargs), nil
}

// cohereTools adds tools. Cohere can be made to call any tool or none; a single one it is offered alone.
func (c *call) cohereTools(kwargs wire.Object) (wire.Object, error) {
	mode := c.choice.mode
	if mode == "function" {
		c.tools = slices.DeleteFunc(slices.Clone(c.tools), func(t tool) bool { return t.name != c.choice.name })
		mode = "required"
	}
	kwargs, err := c.functionTools(kwargs)
	if err != nil || len(c.tools) == 0 {
		return kwargs, err
	}
	switch mode {
	case "", "auto":
		return kwargs, nil
	case "required":
		return append(kwargs, memberOf("tool_choice", quoted("REQUIRED"))), nil
	case "none":
		return append(kwargs, memberOf("tool_choice", quoted("NONE"))), nil
	}
	return nil, c.noChoice()
}

func (c *call) cohereMessage(m *message) (json.RawMessage, error) {
	role := m.role
	if role == "developer" {
		role = "system"
	}
	out := newObject().str("role", role)
	if len(m.content) > 0 || len(m.calls) == 0 {
		content, err := c.chunks(m, c.cohereChunk)
		if err != nil {
			return nil, err
		}
		out = out.raw("content", content)
	}
	if m.name != "" && role != "tool" {
		c.warn("The name of %s was left out: %s has no place for it.", place(m.at), c.provider)
	}
	if role == "tool" {
		out = out.str("tool_call_id", m.toolCallID)
	}
	if len(m.calls) > 0 {
		out = out.raw("tool_calls", openAICalls(m.calls))
	}
	return out.end(), nil
}

func (c *call) cohereChunk(m *message, b *block) (json.RawMessage, error) {
	switch {
	case b.kind == "thinking" && m.role == "assistant":
		return newObject().str("type", "thinking").str("thinking", b.member("thinking")).end(), nil
	case b.kind != "image_url" && b.kind != "media":
		return nil, c.cannotHold(b, "a message; take it out")
	case m.role != "user":
		return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.role)
	}
	f := fileOf(b)
	if !f.is("image") {
		return nil, c.cannotHold(b, "a message, as %s; give an image", f.describe())
	}
	image := newObject().str("url", f.asURL())
	if f.detail != nil {
		image = image.raw("detail", f.detail)
	}
	return newObject().str("type", "image_url").raw("image_url", image.end()).end(), nil
}
