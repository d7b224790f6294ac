package render

import (
	"encoding/json"

	"promptspool/api/wire"
)

// mistral makes the arguments of client.chat.complete of Mistral's own clients, as its API reference has them under "Chat
// Completion" (https://docs.mistral.ai/api/#tag/chat), in snake case, as the Python client takes them. Mistral has no completions
// of plain text but fill-in-the-middle: a completion becomes a message of the user.
func mistral(c *call) (wire.Object, error) {
	kwargs := c.named("model")
	if err := c.modernize(); err != nil {
		return nil, err
	}
	messages, err := c.eachMessage(c.mistralMessage)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("messages", array(messages)))
	kwargs, err = c.functionTools(kwargs)
	if err != nil {
		return nil, err
	}
	if len(c.tools) > 0 && c.choice.raw != nil {
		choice := c.choice.raw
		switch c.choice.mode {
		case "auto", "none":
		case "required":
			choice = quoted("any")
		case "function":
			choice = newObject().str("type", "function").raw("function", newObject().str("name", c.choice.name).end()).end()
		default:
			return nil, c.noChoice()
		}
		kwargs = append(kwargs, memberOf("tool_choice", choice))
	}
	return c.parameterized(kwargs), nil
}

// functionTools adds tools in the form that several providers took over from OpenAI.
func (c *call) functionTools(kwargs wire.Object) (wire.Object, error) {
	if len(c.tools) == 0 {
		return kwargs, nil
	}
	tools := make([]json.RawMessage, len(c.tools))
	for i, t := range c.tools {
		if t.kind != "function" {
			return nil, inexpressible(t.at, "is %q, and %s takes functions only; take it out", shorten(t.kind), c.provider)
		}
		function := t.declaration("parameters", t.schema())
		tools[i] = newObject().str("type", "function").raw("function", function).end()
	}
	return append(kwargs, memberOf("tools", array(tools))), nil
}

// declaration is a function's name, description and schema, as most providers want them.
func (t tool) declaration(schemaName string, schema json.RawMessage) json.RawMessage {
	out := newObject().str("name", t.name)
	if t.description != "" {
		out = out.str("description", t.description)
	}
	out = out.raw(schemaName, schema)
	if strict := member(t.raw, "strict"); string(strict) == "true" {
		out = out.raw("strict", strict)
	}

	return out.end()
}

func (c *call) mistralMessage(m *message) (json.RawMessage, error) {
	role := m.role
	if role == "developer" {
		role = "system"
	}
	content, err := c.chunks(m, c.mistralChunk)
	if err != nil {
		return nil, err
	}
	out := newObject().str("role", role).raw("content", content)
	switch {
	case role == "tool":
		out = out.str("tool_call_id", m.toolCallID)
		if name := c.calledName(m); name != "" {
			out = out.str("name", name)
		}
	case m.name != "":
		c.warn("The name of %s was left out: %s has no place for it.", place(m.at), c.provider)
	}
	if len(m.calls) > 0 {
		out = out.raw("tool_calls", openAICalls(m.calls))
	}
	return out.end(), nil
}

// eachMessage makes a list of what one makes of each message. A completion becomes a message of the user.
func (c *call) eachMessage(one func(m *message) (json.RawMessage, error)) ([]json.RawMessage, error) {
	list := c.messages
	if !c.chat {
		list = []message{{at: "prompt_template", role: "user", content: c.content}}
	}
	messages := make([]json.RawMessage, 0, len(list))
	for i := range list {
		m := &list[i]
		if m.role == "placeholder" { // nothing was filled in
			continue
		}
		out, err := one(m)
		if err != nil {
			return nil, err
		}
		messages = append(messages, out)
	}
	return messages, nil
}

// chunks is the content of a message: a string where it is one text or nothing, else a list of what chunk makes of each block.
func (c *call) chunks(m *message, chunk func(m *message, b *block) (json.RawMessage, error)) (json.RawMessage, error) {
	if len(m.content) == 0 {
		return quoted(""), nil
	}
	if len(m.content) == 1 && m.content[0].kind == "text" {
		return quoted(m.content[0].text), nil
	}
	list := make([]json.RawMessage, 0, len(m.content))
	for i := range m.content {
		b := &m.content[i]
		if b.unfilled() {
			continue // nothing was filled in
		}
		if b.kind == "text" {
			list = append(list, newObject().str("type", "text").str("text", b.text).end())
			continue
		}
		raw, err := chunk(m, b)
		if err != nil {
			return nil, err
		}
		list = append(list, raw)
	}
	return array(list), nil
}

func (c *call) mistralChunk(m *message, b *block) (json.RawMessage, error) {
	switch {
	case b.kind == "thinking" && m.role == "assistant":
		text := newObject().str("type", "text").str("text", b.member("thinking")).end()
		return newObject().str("type", "thinking").raw("thinking", array([]json.RawMessage{text})).end(), nil
	case b.kind != "image_url" && b.kind != "media":
		return nil, c.cannotHold(b, "a message; take it out")
	case m.role != "user":
		return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.role)
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		return newObject().str("type", "image_url").str("image_url", f.asURL()).end(), nil
	case f.mime == "application/pdf":
		return newObject().str("type", "document_url").str("document_url", f.asURL()).end(), nil
	case f.is("audio"):
		audio := f.data
		if audio == "" {
			audio = f.url
		}
		return newObject().str("type", "input_audio").str("input_audio", audio).end(), nil
	}
	return nil, c.cannotHold(b, "a message, as %s; give an image, a PDF or audio", f.describe())
}
