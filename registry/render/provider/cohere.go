package provider

import (
	"encoding/json"
	"slices"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// cohere makes the arguments of client.v2.chat of Cohere's own clients. See "Chat API
// (v2)" (https://docs.cohere.com/reference/chat), in snake case, as the Python client
// takes them. A completion becomes a message of the user.
func cohere(c *call) wire.Object {
	kwargs := c.newKwargs("model")
	messages := c.eachMessage(c.cohereMessage)
	kwargs = append(kwargs, rawjson.MemberOf("messages", rawjson.Array(messages)))
	return c.cohereTools(kwargs)
}

// cohereTools adds tools. Cohere can be made to call any tool or none, but not a certain
// one; that one is then offered alone.
func (c *call) cohereTools(kwargs wire.Object) wire.Object {
	if c.Choice.Mode == "function" {
		// Cloned, because the prompt's tools are shared.
		c.Tools = slices.DeleteFunc(slices.Clone(c.Tools), func(t prompt.Tool) bool {
			return t.Name != c.Choice.Name
		})
		c.Choice.Mode = "required"
	}

	return c.functionTools(kwargs, choices{"auto": "", "required": `"REQUIRED"`, "none": `"NONE"`})
}

func (c *call) cohereMessage(m *prompt.Message) json.RawMessage {
	var content json.RawMessage
	// A message that only calls tools has none.
	if len(m.Content) > 0 || len(m.Calls) == 0 {
		content = c.chunks(m, c.cohereChunk)
	}

	return c.namelessMessage(m, content, false)
}

func (c *call) cohereChunk(m *prompt.Message, b *prompt.Block) json.RawMessage {
	switch {
	case b.Kind == "thinking" && m.Role == "assistant":
		return rawjson.Form(`{"type":"thinking","thinking":$}`, b.StringMember("thinking"))
	case !c.isUsersFile(m, b):
		return nil
	}

	f := fileOf(b)
	if !f.is("image") {
		return c.cannotHold(b, "a message, as %s; give an image", f.describe())
	}

	return imagePart(f)
}
