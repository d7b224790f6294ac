package provider

import (
	"encoding/json"
	"strings"

	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// turn is consecutive messages of one side, for providers whose conversations alternate.
type turn struct {
	role  string
	parts []json.RawMessage
}

// dialect is how such a provider writes what is in a message.
type dialect struct {
	block  func(*prompt.Message, *prompt.Block) (json.RawMessage, error)
	call   func(_ prompt.ToolCall, input json.RawMessage) json.RawMessage
	result func(*prompt.Message) (json.RawMessage, error) // of a tool
}

// said returns the side that a message is on, and its parts. The result of a tool is
// something that the user says.
func (c *call) said(m *prompt.Message, d dialect) (string, []json.RawMessage, error) {
	if m.Role == "tool" {
		result, err := d.result(m)
		return "user", []json.RawMessage{result}, err
	}

	parts, err := eachBlock(m, d.block)
	if err != nil {
		return "", nil, err
	}
	for _, call := range m.Calls {
		input, err := c.input(m.At, call)
		if err != nil {
			return "", nil, err
		}
		parts = append(parts, d.call(call, input))
	}

	return m.Role, parts, nil
}

// turns joins what is said in the messages. Consecutive messages of one role become one
// turn.
//
// System messages are left out: see system. Empty messages, which these providers do
// not take, are left out with a warning.
func (c *call) turns(d dialect) ([]turn, error) {
	var list []turn
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role == "placeholder" || isSystem(m) {
			continue
		}
		role, parts, err := c.said(m, d)
		if err != nil {
			return nil, err
		}

		if m.Name != "" && m.Role != "tool" {
			c.warnName(m)
		}
		if len(parts) == 0 {
			c.warn("%s was left out: it is empty, and %s takes no empty message.",
				prompt.Place(m.At), c.provider)
			continue
		}
		// These providers reject two messages of one role in a row.
		if n := len(list); n > 0 && list[n-1].role == role {
			list[n-1].parts = append(list[n-1].parts, parts...)
			continue
		}
		list = append(list, turn{role, parts})
	}

	if len(list) == 0 {
		c.warn("There is no message of the role user; %s needs one, so add it before the call.", c.provider)
	}

	return list, nil
}

// turnsJSON writes turns as [{role, name: parts}].
func turnsJSON(list []turn, name string) json.RawMessage {
	// Sized first: prompts may be megabytes, and growing would copy them several times.
	size := 2
	for _, t := range list {
		size += 48
		for _, part := range t.parts {
			size += len(part) + 1
		}
	}

	b := append(make([]byte, 0, size), '[')
	for i, t := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendArray(rawjson.Within(b).Str("role", t.role).Name(name), t.parts)
		b = append(b, '}')
	}

	return append(b, ']')
}

func isSystem(m *prompt.Message) bool { return m.Role == "system" || m.Role == "developer" }

// system lists what convert makes of the texts of all messages of the roles system and
// developer that are not empty.
func (c *call) system(convert func(text string) json.RawMessage) ([]json.RawMessage, error) {
	var parts []json.RawMessage
	for i := range c.Messages {
		m := &c.Messages[i]
		if !isSystem(m) {
			continue
		}
		s, err := c.messageText(m)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(s) != "" {
			parts = append(parts, convert(s))
		}
	}

	return parts, nil
}

// eachBlock lists what convert makes of each block of a message, leaving out those that
// nothing was filled into, or that it turns into nothing.
func eachBlock(
	m *prompt.Message, convert func(*prompt.Message, *prompt.Block) (json.RawMessage, error),
) (blocks []json.RawMessage, err error) {
	for i := range m.Content {
		// A part without its images would be rejected by the provider.
		if m.Content[i].IsUnfilled() {
			continue
		}
		raw, err := convert(m, &m.Content[i])
		if err != nil {
			return nil, err
		}
		if raw != nil {
			blocks = append(blocks, raw)
		}
	}

	return blocks, nil
}

// eachMessage lists what convert makes of each message. A completion becomes a message of
// the user.
func (c *call) eachMessage(
	convert func(m *prompt.Message) (json.RawMessage, error),
) ([]json.RawMessage, error) {
	list := c.Messages
	if !c.Chat {
		// These APIs have chat only.
		list = []prompt.Message{{At: "prompt_template", Role: "user", Content: c.Content}}
	}

	messages := make([]json.RawMessage, 0, len(list))
	for i := range list {
		m := &list[i]
		if m.Role == "placeholder" { // nothing was filled in
			continue
		}
		out, err := convert(m)
		if err != nil {
			return nil, err
		}
		messages = append(messages, out)
	}

	return messages, nil
}

// chunks writes the content of a message: a string if it is one text or nothing,
// otherwise a list with what convert makes of each block.
func (c *call) chunks(
	m *prompt.Message,
	convert func(m *prompt.Message, b *prompt.Block) (json.RawMessage, error),
) (json.RawMessage, error) {
	if len(m.Content) == 0 {
		return rawjson.Quote(""), nil
	}
	if len(m.Content) == 1 && m.Content[0].Kind == "text" {
		return rawjson.Quote(m.Content[0].Text), nil
	}

	list, err := eachBlock(m, func(m *prompt.Message, b *prompt.Block) (json.RawMessage, error) {
		if b.Kind == "text" {
			return textPart(b.Text), nil
		}
		return convert(m, b)
	})

	return rawjson.Array(list), err
}

// bareText writes a text as a part without a type.
func bareText(text string) json.RawMessage { return rawjson.Form(`{"text":$}`, text) }

// textPart writes a text in the form that most providers use.
func textPart(text string) json.RawMessage { return rawjson.Form(`{"type":"text","text":$}`, text) }
