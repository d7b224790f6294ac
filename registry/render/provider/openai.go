package provider

import (
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// openAI makes the arguments of client.chat.completions.create, client.completions.create
// or, with the api_type responses, client.responses.create of OpenAI's own clients, for
// OpenAI and for Azure. See "Create chat completion"
// (https://platform.openai.com/docs/api-reference/chat/create) and "Create completion"
// (https://platform.openai.com/docs/api-reference/completions/create).
func openAI(c *call) (wire.Object, error) {
	switch NormalAPI(c.provider, c.apiType) {
	case chatAPI:
	case "responses":
		return openAIResponses(c)
	default:
		return nil, cannotExpress("api_type",
			"%q of metadata.model is not one that llm_kwargs can be made for; "+
				"it may be chat.completions or responses",
			language.Shorten(c.apiType))
	}

	kwargs := c.newKwargs("model")
	if !c.Chat {
		text, err := c.completionText()
		return rawjson.Set(kwargs, "prompt", rawjson.Quote(text)), err
	}

	messages, err := openAIMessages(c)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, rawjson.MemberOf("messages", messages))
	kwargs, err = openAITools(kwargs, c)
	if err != nil {
		return nil, err
	}
	// Functions are the older form of tools. OpenAI still takes them as they are.
	if len(c.Functions) > 0 {
		kwargs = append(kwargs, rawjson.MemberOf("functions", functionList(c.Functions)))
		if c.Call.Raw != nil {
			kwargs = append(kwargs, rawjson.MemberOf("function_call", c.Call.Raw))
		}
	}

	return kwargs, nil
}

func functionList(list []prompt.Tool) json.RawMessage {
	raw := make([]json.RawMessage, len(list))
	for i, f := range list {
		raw[i] = f.Raw
	}

	return rawjson.Array(raw)
}

// openAIMessages writes the list of messages, into one buffer.
func openAIMessages(c *call) (json.RawMessage, error) {
	b := append(make([]byte, 0, c.size()), '[')
	for i := range c.Messages {
		m := &c.Messages[i]
		// Nothing was filled into it.
		if m.Role == "placeholder" {
			continue
		}
		// Placeholders leave no comma.
		if len(b) > 1 {
			b = append(b, ',')
		}

		out := rawjson.Within(b).Str("role", m.Role)
		// The usual case, without a copy.
		if len(m.Content) == 1 && m.Content[0].Kind == "text" {
			out = out.Str("content", m.Content[0].Text)
		} else {
			content, err := c.openAIContent(m)
			if err != nil {
				return nil, err
			}
			out = out.Raw("content", content)
		}

		if m.Name != "" {
			out = out.Str("name", m.Name)
		}
		if m.FunctionCall != nil {
			out = out.Raw("function_call", functionOf(*m.FunctionCall))
		}
		if m.ToolCallID != "" {
			out = out.Str("tool_call_id", m.ToolCallID)
		}
		if len(m.Calls) > 0 {
			out = out.Raw("tool_calls", openAICalls(m.Calls))
		}
		b = out.End()
	}

	return append(b, ']'), nil
}

// openAICalls writes tool calls in the form that several providers took over.
func openAICalls(calls []prompt.ToolCall) json.RawMessage {
	list := make([]json.RawMessage, len(calls))
	for i, call := range calls {
		list[i] = rawjson.NewObject().
			Str("id", call.ID).
			Str("type", "function").
			Raw("function", functionOf(call)).
			End()
	}

	return rawjson.Array(list)
}

func functionOf(call prompt.ToolCall) json.RawMessage {
	return rawjson.NewObject().Str("name", call.Name).Str("arguments", call.Arguments).End()
}

// openAIContent writes the content of a message that is not just one text: null for a
// call without words, otherwise an array of content parts.
func (c *call) openAIContent(m *prompt.Message) (json.RawMessage, error) {
	switch {
	case len(m.Content) == 0 && (m.Role == "assistant" || m.Role == "function"):
		return json.RawMessage("null"), nil
	case len(m.Content) == 0:
		return rawjson.Quote(""), nil
	}

	parts, err := eachBlock(m, c.openAIPart)
	if err != nil {
		return nil, err
	}
	// All of them were left out; an empty array would be rejected.
	if len(parts) == 0 {
		return rawjson.Quote(""), nil
	}

	return rawjson.Array(parts), nil
}

// openAIPart writes one content part of a chat completion.
func (c *call) openAIPart(m *prompt.Message, b *prompt.Block) (json.RawMessage, error) {
	if b.Kind != "text" && m.Role != "user" {
		return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.Role)
	}

	switch b.Kind {
	case "text":
		return textPart(b.Text), nil
	case "image_url", "media":
	default:
		return nil, c.cannotHold(b,
			"a chat completion; take it out, or set api_type of metadata.model to responses")
	}

	f := fileOf(b)
	switch {
	case f.is("image"):
		return imagePart(f), nil
	case f.is("audio") && f.data != "":
		audio := rawjson.NewObject().Str("data", f.data).Str("format", f.format()).End()
		return rawjson.NewObject().Str("type", "input_audio").Raw("input_audio", audio).End(), nil
	case f.mime == "application/pdf" && f.data != "":
		pdf := rawjson.NewObject().Str("filename", f.title).Str("file_data", f.asURL()).End()
		return rawjson.NewObject().Str("type", "file").Raw("file", pdf).End(), nil
	}

	return nil, c.cannotHold(b,
		"a chat completion, as %s; give an image, or audio or a PDF as a data: URL", f.describe())
}

// imagePart writes an image in the form that several providers took over.
func imagePart(f file) json.RawMessage {
	image := rawjson.NewObject().Str("url", f.asURL())
	if f.detail != nil {
		image = image.Raw("detail", f.detail)
	}

	return rawjson.NewObject().Str("type", "image_url").Raw("image_url", image.End()).End()
}

// openAITools adds what the model may call. OpenAI rejects a choice without anything to choose
// from.
func openAITools(kwargs wire.Object, c *call) (wire.Object, error) {
	kwargs, err := c.withTools(kwargs, func(t prompt.Tool) (json.RawMessage, error) {
		if t.Kind != "function" {
			return nil, cannotExpress(t.At,
				"is %q, and a chat completion takes functions only; "+
					"set api_type of metadata.model to responses",
				language.Shorten(t.Kind))
		}
		return rawjson.NewObject().Str("type", "function").Raw("function", t.Raw).End(), nil
	})
	if err == nil && len(c.Tools) > 0 && c.Choice.Raw != nil {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}

	return kwargs, err
}
