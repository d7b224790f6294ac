package provider

import (
	"encoding/json"

	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

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
func bareText(text string) json.RawMessage { return rawjson.NewObject().Str("text", text).End() }

// textPart writes a text in the form that most providers use.
func textPart(text string) json.RawMessage {
	return rawjson.NewObject().Str("type", "text").Str("text", text).End()
}
