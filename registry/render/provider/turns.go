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
	block  func(*prompt.Message, *prompt.Block) json.RawMessage
	call   func(_ prompt.ToolCall, input json.RawMessage) json.RawMessage
	result func(*prompt.Message) json.RawMessage // of a tool
}

// said returns the side that a message is on, and its parts. The result of a tool is
// something that the user says.
func (c *call) said(m *prompt.Message, d dialect) (string, []json.RawMessage) {
	if m.Role == "tool" {
		return "user", []json.RawMessage{d.result(m)}
	}

	parts := eachBlock(m, d.block)
	for _, call := range m.Calls {
		parts = append(parts, d.call(call, c.input(m.At, call)))
	}

	return m.Role, parts
}

// turns joins what is said in the messages. Consecutive messages of one role become one
// turn.
//
// System messages are left out: see system. Empty messages, which these providers do
// not take, are left out with a warning.
func (c *call) turns(d dialect) []turn {
	var list []turn
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role == "placeholder" || isSystem(m) {
			continue
		}
		role, parts := c.said(m, d)

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

	return list
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
func (c *call) system(convert func(text string) json.RawMessage) []json.RawMessage {
	var parts []json.RawMessage
	for i := range c.Messages {
		m := &c.Messages[i]
		if !isSystem(m) {
			continue
		}
		if s := c.messageText(m); strings.TrimSpace(s) != "" {
			parts = append(parts, convert(s))
		}
	}

	return parts
}

// eachBlock lists what convert makes of each block of a message, leaving out those that
// nothing was filled into, or that it turns into nothing.
func eachBlock(
	m *prompt.Message, convert func(*prompt.Message, *prompt.Block) json.RawMessage,
) (blocks []json.RawMessage) {
	for i := range m.Content {
		// A part without its images would be rejected by the provider.
		if m.Content[i].IsUnfilled() {
			continue
		}
		if raw := convert(m, &m.Content[i]); raw != nil {
			blocks = append(blocks, raw)
		}
	}

	return blocks
}

// eachMessage lists what convert makes of each message. A completion becomes a message of
// the user.
func (c *call) eachMessage(
	convert func(m *prompt.Message) json.RawMessage,
) []json.RawMessage {
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
		messages = append(messages, convert(m))
	}

	return messages
}

// chunks writes the content of a message: a string if it is one text or nothing,
// otherwise a list with what convert makes of each block.
func (c *call) chunks(
	m *prompt.Message,
	convert func(m *prompt.Message, b *prompt.Block) json.RawMessage,
) json.RawMessage {
	if len(m.Content) == 0 {
		return rawjson.Quote("")
	}
	if len(m.Content) == 1 && m.Content[0].Kind == "text" {
		return rawjson.Quote(m.Content[0].Text)
	}

	list := eachBlock(m, func(m *prompt.Message, b *prompt.Block) json.RawMessage {
		if b.Kind == "text" {
			return textPart(b.Text)
		}
		return convert(m, b)
	})

	return rawjson.Array(list)
}

// bareText writes a text as a part without a type.
func bareText(text string) json.RawMessage { return rawjson.Form(`{"text":$}`, text) }

// textPart writes a text in the form that most providers use.
func textPart(text string) json.RawMessage { return rawjson.Form(`{"type":"text","text":$}`, text) }
