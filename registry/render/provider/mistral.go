package provider

import (
	"cmp"
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// mistral makes the arguments of client.chat.complete of Mistral's own clients. See "Chat
// Completion" (https://docs.mistral.ai/api/#tag/chat), in snake case, as the Python
// client takes them.
//
// Mistral has no completions of plain text except fill-in-the-middle: a completion
// becomes a message of the user.
func mistral(c *call) wire.Object {
	kwargs := c.newKwargs("model")
	messages := rawjson.Array(c.eachMessage(c.mistralMessage))
	kwargs = append(kwargs, rawjson.MemberOf("messages", messages))

	return c.functionTools(kwargs, mistralChoices)
}

var mistralChoices = choices{
	"auto":     `"auto"`,
	"none":     `"none"`,
	"required": `"any"`,
	"function": `{"type":"function","function":{"name":$}}`,
}

func (c *call) mistralMessage(m *prompt.Message) json.RawMessage {
	return c.namelessMessage(m, c.chunks(m, c.mistralChunk), true)
}

func (c *call) mistralChunk(m *prompt.Message, b *prompt.Block) json.RawMessage {
	switch {
	case b.Kind == "thinking" && m.Role == "assistant":
		return rawjson.Form(`{"type":"thinking","thinking":[$]}`, textPart(b.StringMember("thinking")))
	case !c.isUsersFile(m, b):
		return nil
	}

	f := fileOf(b)
	switch {
	case f.is("image"):
		return rawjson.Form(`{"type":"image_url","image_url":$}`, f.asURL())
	case f.mime == "application/pdf":
		return rawjson.Form(`{"type":"document_url","document_url":$}`, f.asURL())
	case f.is("audio"):
		// Mistral takes data and urls in the same place.
		return rawjson.Form(`{"type":"input_audio","input_audio":$}`, cmp.Or(f.data, f.url))
	}

	return c.cannotHold(b, "a message, as %s; give an image, a PDF or audio", f.describe())
}
