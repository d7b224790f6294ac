package provider

import (
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// mistral makes the arguments of client.chat.complete of Mistral's own clients, as its API reference has them under "Chat
// Completion" (https://docs.mistral.ai/api/#tag/chat), in snake case, as the Python client takes them. Mistral has no completions
// of plain text but fill-in-the-middle: a completion becomes a message of the user.
func mistral(c *call) (wire.Object, error) {
	kwargs := c.newKwargs("model")
	if err := c.useTools(); err != nil {
		return nil, err
	}
	messages, err := c.eachMessage(c.mistralMessage)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, rawjson.MemberOf("messages", rawjson.Array(messages)))
	kwargs, err = c.functionTools(kwargs)
	if err != nil {
		return nil, err
	}
	if len(c.Tools) > 0 && c.Choice.Raw != nil {
		choice := c.Choice.Raw
		switch c.Choice.Mode {
		case "auto", "none":
		case "required":
			choice = rawjson.Quote("any")
		case "function":
			choice = rawjson.NewObject().Str("type", "function").Raw("function", rawjson.NewObject().Str("name", c.Choice.Name).End()).End()
		default:
			return nil, c.noChoice()
		}
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", choice))
	}
	return c.withParameters(kwargs), nil
}

// functionTools adds tools in the form that several providers took over from OpenAI.
func (c *call) functionTools(kwargs wire.Object) (wire.Object, error) {
	if len(c.Tools) == 0 {
		return kwargs, nil
	}
	tools := make([]json.RawMessage, len(c.Tools))
	for i, t := range c.Tools {
		if t.Kind != "function" {
			return nil, cannotExpress(t.At, "is %q, and %s takes functions only; take it out", language.Shorten(t.Kind), c.provider)
		}
		function := declare(&t, "parameters", schemaOf(&t))
		tools[i] = rawjson.NewObject().Str("type", "function").Raw("function", function).End()
	}
	return append(kwargs, rawjson.MemberOf("tools", rawjson.Array(tools))), nil
}

// declare writes a function's name, description and schema, as most providers want them.
func declare(t *prompt.Tool, schemaName string, schema json.RawMessage) json.RawMessage {
	out := rawjson.NewObject().Str("name", t.Name)
	if t.Description != "" {
		out = out.Str("description", t.Description)
	}
	out = out.Raw(schemaName, schema)
	if strict := rawjson.Member(t.Raw, "strict"); string(strict) == "true" {
		out = out.Raw("strict", strict)
	}

	return out.End()
}

func (c *call) mistralMessage(m *prompt.Message) (json.RawMessage, error) {
	role := m.Role
	if role == "developer" {
		role = "system"
	}
	content, err := c.chunks(m, c.mistralChunk)
	if err != nil {
		return nil, err
	}
	out := rawjson.NewObject().Str("role", role).Raw("content", content)
	switch {
	case role == "tool":
		out = out.Str("tool_call_id", m.ToolCallID)
		if name := c.calledName(m); name != "" {
			out = out.Str("name", name)
		}
	case m.Name != "":
		c.warn("The name of %s was left out: %s has no place for it.", prompt.Place(m.At), c.provider)
	}
	if len(m.Calls) > 0 {
		out = out.Raw("tool_calls", openAICalls(m.Calls))
	}
	return out.End(), nil
}

// eachMessage makes a list of what one makes of each message. A completion becomes a message of the user.
func (c *call) eachMessage(one func(m *prompt.Message) (json.RawMessage, error)) ([]json.RawMessage, error) {
	list := c.Messages
	if !c.Chat {
		list = []prompt.Message{{At: "prompt_template", Role: "user", Content: c.Content}}
	}
	messages := make([]json.RawMessage, 0, len(list))
	for i := range list {
		m := &list[i]
		if m.Role == "placeholder" { // nothing was filled in
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
func (c *call) chunks(m *prompt.Message, chunk func(m *prompt.Message, b *prompt.Block) (json.RawMessage, error)) (json.RawMessage, error) {
	if len(m.Content) == 0 {
		return rawjson.Quote(""), nil
	}
	if len(m.Content) == 1 && m.Content[0].Kind == "text" {
		return rawjson.Quote(m.Content[0].Text), nil
	}
	list := make([]json.RawMessage, 0, len(m.Content))
	for i := range m.Content {
		b := &m.Content[i]
		if b.IsUnfilled() {
			continue // nothing was filled in
		}
		if b.Kind == "text" {
			list = append(list, rawjson.NewObject().Str("type", "text").Str("text", b.Text).End())
			continue
		}
		raw, err := chunk(m, b)
		if err != nil {
			return nil, err
		}
		list = append(list, raw)
	}
	return rawjson.Array(list), nil
}

func (c *call) mistralChunk(m *prompt.Message, b *prompt.Block) (json.RawMessage, error) {
	switch {
	case b.Kind == "thinking" && m.Role == "assistant":
		text := rawjson.NewObject().Str("type", "text").Str("text", b.Member("thinking")).End()
		return rawjson.NewObject().Str("type", "thinking").Raw("thinking", rawjson.Array([]json.RawMessage{text})).End(), nil
	case b.Kind != "image_url" && b.Kind != "media":
		return nil, c.cannotHold(b, "a message; take it out")
	case m.Role != "user":
		return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.Role)
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		return rawjson.NewObject().Str("type", "image_url").Str("image_url", f.asURL()).End(), nil
	case f.mime == "application/pdf":
		return rawjson.NewObject().Str("type", "document_url").Str("document_url", f.asURL()).End(), nil
	case f.is("audio"):
		audio := f.data
		if audio == "" {
			audio = f.url
		}
		return rawjson.NewObject().Str("type", "input_audio").Str("input_audio", audio).End(), nil
	}
	return nil, c.cannotHold(b, "a message, as %s; give an image, a PDF or audio", f.describe())
}
