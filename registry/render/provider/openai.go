package provider

import (
	"encoding/json"
	"slices"
	"strings"

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
func openAI(c *call) wire.Object {
	switch NormalAPI(c.provider, c.apiType) {
	case chatAPI:
	case "responses":
		return openAIResponses(c)
	default:
		c.reject("api_type",
			"%q of metadata.model is not one that llm_kwargs can be made for; "+
				"it may be chat.completions or responses",
			language.Shorten(c.apiType))
	}

	kwargs := c.newKwargs("model")
	if !c.Chat {
		return rawjson.Set(kwargs, "prompt", rawjson.Quote(c.completionText()))
	}

	kwargs = append(kwargs, rawjson.MemberOf("messages", rawjson.Array(c.eachMessage(c.openAIMessage))))
	kwargs = openAITools(kwargs, c)
	// Functions are the older form of tools. OpenAI still takes them as they are.
	if len(c.Functions) > 0 {
		functions := rawjson.ArrayOf(c.Functions, func(f prompt.Tool) json.RawMessage { return f.Raw })
		kwargs = append(kwargs, rawjson.MemberOf("functions", functions))
		if c.Call.Raw != nil {
			kwargs = append(kwargs, rawjson.MemberOf("function_call", c.Call.Raw))
		}
	}

	return kwargs
}

// openAIMessage writes a message.
func (c *call) openAIMessage(m *prompt.Message) json.RawMessage {
	out := rawjson.NewObject().Str("role", m.Role)
	if len(m.Content) == 1 && m.Content[0].Kind == "text" {
		out = out.Str("content", m.Content[0].Text)
	} else {
		out = out.Raw("content", c.openAIContent(m))
	}

	out = out.Some("name", m.Name)
	if m.FunctionCall != nil {
		out = out.Raw("function_call", functionOf(*m.FunctionCall))
	}

	return out.Some("tool_call_id", m.ToolCallID).SomeRaw("tool_calls", openAICalls(m.Calls)).End()
}

// openAICalls writes tool calls in the form that several providers took over; nil if there are none.
func openAICalls(calls []prompt.ToolCall) json.RawMessage {
	if len(calls) == 0 {
		return nil
	}

	return rawjson.ArrayOf(calls, func(call prompt.ToolCall) json.RawMessage {
		return rawjson.Form(`{"id":$,"type":"function","function":$}`, call.ID, functionOf(call))
	})
}

func functionOf(call prompt.ToolCall) json.RawMessage {
	return rawjson.Form(`{"name":$,"arguments":$}`, call.Name, call.Arguments)
}

// openAIContent writes the content of a message that is not just one text: null for a
// call without words, otherwise an array of content parts.
func (c *call) openAIContent(m *prompt.Message) json.RawMessage {
	switch {
	case len(m.Content) == 0 && (m.Role == "assistant" || m.Role == "function"):
		return json.RawMessage("null")
	case len(m.Content) == 0:
		return rawjson.Quote("")
	}

	parts := eachBlock(m, c.openAIPart)
	// All of them were left out; an empty array would be rejected.
	if len(parts) == 0 {
		return rawjson.Quote("")
	}

	return rawjson.Array(parts)
}

// openAIPart writes one content part of a chat completion.
func (c *call) openAIPart(m *prompt.Message, b *prompt.Block) json.RawMessage {
	if b.Kind != "text" && m.Role != "user" {
		return c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.Role)
	}

	switch b.Kind {
	case "text":
		return textPart(b.Text)
	case "image_url", "media":
	default:
		return c.cannotHold(b,
			"a chat completion; take it out, or set api_type of metadata.model to responses")
	}

	f := fileOf(b)
	switch {
	case f.is("image"):
		return imagePart(f)
	case f.is("audio") && f.data != "":
		return rawjson.Form(`{"type":"input_audio","input_audio":{"data":$,"format":$}}`, f.data, f.format())
	case f.mime == "application/pdf" && f.data != "":
		return rawjson.Form(`{"type":"file","file":{"filename":$,"file_data":$}}`, f.title, f.asURL())
	}

	return c.cannotHold(b,
		"a chat completion, as %s; give an image, or audio or a PDF as a data: URL", f.describe())
}

// imagePart writes an image in the form that several providers took over.
func imagePart(f file) json.RawMessage {
	image := rawjson.NewObject().Str("url", f.asURL()).SomeRaw("detail", f.detail)
	return rawjson.Form(`{"type":"image_url","image_url":$}`, image.End())
}

// openAITools adds what the model may call. OpenAI rejects a choice without anything to choose
// from.
func openAITools(kwargs wire.Object, c *call) wire.Object {
	kwargs = c.withTools(kwargs, func(t prompt.Tool) json.RawMessage {
		if t.Kind != "function" {
			return c.reject(t.At,
				"is %q, and a chat completion takes functions only; "+
					"set api_type of metadata.model to responses",
				language.Shorten(t.Kind))
		}
		return rawjson.Form(`{"type":"function","function":$}`, t.Raw)
	})
	if len(c.Tools) > 0 && c.Choice.Raw != nil {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}

	return kwargs
}

// openAIResponses makes the arguments of client.responses.create. See "Create a model
// response" (https://platform.openai.com/docs/api-reference/responses/create).
func openAIResponses(c *call) wire.Object {
	kwargs := c.newKwargs("model")
	if !c.Chat {
		return append(kwargs, rawjson.MemberOf("input", rawjson.Quote(c.completionText())))
	}
	input := make([]json.RawMessage, 0, len(c.Messages))
	for i := range c.Messages {
		input = append(input, c.responseItems(&c.Messages[i])...)
	}
	kwargs = append(kwargs, rawjson.MemberOf("input", rawjson.Array(input)))
	kwargs = c.withTools(kwargs, c.responseTool)
	if len(c.Tools) == 0 {
		return kwargs
	}

	if c.Choice.Mode == "function" {
		return c.withChoice(kwargs, choices{"function": `{"type":"function","name":$}`})
	}
	if c.Choice.Mode != "" {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}

	return kwargs
}

// responseTool writes a tool of the Responses API. Unlike in a chat completion, a
// function is strict there unless it says otherwise.
func (c *call) responseTool(t prompt.Tool) json.RawMessage {
	if t.Kind != "function" {
		out := wire.Object{rawjson.MemberOf("type", rawjson.Quote(t.Kind))}
		return rawjson.Encode(append(out, rawjson.Without(c.builtIn(t), "type")...))
	}

	// Strict schemas forbid what a template that was written for chat completions may
	// have.
	strict := rawjson.Member(t.Raw, "strict")
	if rawjson.IsNull(strict) {
		strict = json.RawMessage("false")
	}

	return rawjson.NewObject().
		Str("type", "function").
		Str("name", t.Name).
		Some("description", t.Description).
		Raw("parameters", schemaOf(&t)).
		Raw("strict", strict).
		End()
}

// responseItemKinds lists the types of blocks that are items of a response's input as
// they are.
var responseItemKinds = strings.Fields(`
	mcp_list_tools mcp_call mcp_approval_request mcp_approval_response shell_call shell_call_output
	apply_patch_call apply_patch_call_output`)

// responseItems writes the input items of one message: its content, and each of its
// calls, in their order.
func (c *call) responseItems(m *prompt.Message) []json.RawMessage {
	if m.Role == "placeholder" {
		return nil
	}
	if m.Role == "tool" {
		return []json.RawMessage{rawjson.Form(`{"type":"function_call_output","call_id":$,"output":$}`,
			m.ToolCallID, c.messageText(m))}
	}

	// Consecutive parts form one item; a block that is an item itself ends it.
	var items, parts []json.RawMessage
	flush := func() {
		if parts != nil {
			items = append(items, rawjson.Form(`{"role":$,"content":$}`, m.Role, rawjson.Array(parts)))
			parts = nil
		}
	}
	for i := range m.Content {
		b := &m.Content[i]
		switch {
		case b.IsUnfilled():
		case slices.Contains(responseItemKinds, b.Kind):
			flush()
			items = append(items, rawjson.Encode(b.Raw))
		case b.Kind == "thinking" && b.Has("id"):
			flush()
			items = append(items, reasoningItem(b))
		default:
			parts = append(parts, c.responsePart(m.Role, b))
		}
	}
	if parts == nil && items == nil && len(m.Calls) == 0 {
		// An empty message stays one.
		parts = []json.RawMessage{}
	}
	flush()

	for _, call := range m.Calls {
		items = append(items, rawjson.Form(`{"type":"function_call","call_id":$,"name":$,"arguments":$}`,
			call.ID, call.Name, call.Arguments))
	}

	return items
}

func reasoningItem(b *prompt.Block) json.RawMessage {
	return rawjson.Form(`{"type":"reasoning","id":$,"summary":[{"type":"summary_text","text":$}]}`,
		rawjson.Of(b.Raw, "id"), b.StringMember("thinking"))
}

func (c *call) responsePart(role string, b *prompt.Block) json.RawMessage {
	switch {
	case b.Kind == "text" && role == "assistant":
		return rawjson.Form(`{"type":"output_text","text":$}`, b.Text)
	case b.Kind == "text":
		return rawjson.Form(`{"type":"input_text","text":$}`, b.Text)
	case b.Kind != "image_url" && b.Kind != "media":
		return c.cannotHold(b, "the input of a response; take it out")
	case role == "assistant":
		return c.cannotHold(b, "a message of the role assistant; put it into one of the role user")
	}

	f := fileOf(b)
	switch {
	case f.is("image"):
		detail := f.detail
		if detail == nil {
			detail = rawjson.Quote("auto")
		}
		return rawjson.Form(`{"type":"input_image","image_url":$,"detail":$}`, f.asURL(), detail)
	case f.data != "":
		return rawjson.Form(`{"type":"input_file","filename":$,"file_data":$}`, f.title, f.asURL())
	}

	return rawjson.Form(`{"type":"input_file","file_url":$}`, f.url)
}
