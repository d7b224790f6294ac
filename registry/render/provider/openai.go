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

// openAI makes the arguments of client.chat.completions.create, client.completions.create or, with the api_type responses,
// client.responses.create of OpenAI's own clients, for OpenAI and for Azure, as its API reference has them: "Create chat
// completion" (https://platform.openai.com/docs/api-reference/chat/create), "Create completion"
// (https://platform.openai.com/docs/api-reference/completions/create), "Create a model response"
// (https://platform.openai.com/docs/api-reference/responses/create).
func openAI(c *call) (wire.Object, error) {
	switch NormalAPI(c.provider, c.apiType) {
	case chatAPI:
	case "responses":
		return openAIResponses(c)
	default:
		return nil, cannotExpress("api_type", "%q of metadata.model is not one that llm_kwargs can be made for; it may be chat.completions or responses", language.Shorten(c.apiType))
	}
	kwargs := c.newKwargs("model")
	if !c.Chat {
		prompt, err := c.completionText()
		return c.withParameters(rawjson.Set(kwargs, "prompt", rawjson.Quote(prompt))), err
	}
	messages, err := openAIMessages(c)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, rawjson.MemberOf("messages", messages))
	if kwargs, err = openAITools(kwargs, c); err != nil {
		return nil, err
	}
	if len(c.Functions) > 0 {
		kwargs = append(kwargs, rawjson.MemberOf("functions", functionList(c.Functions)))
		if c.Call.Raw != nil {
			kwargs = append(kwargs, rawjson.MemberOf("function_call", c.Call.Raw))
		}
	}
	return c.withParameters(kwargs), nil
}

func functionList(list []prompt.Tool) json.RawMessage {
	raw := make([]json.RawMessage, len(list))
	for i, f := range list {
		raw[i] = f.Raw
	}
	return rawjson.Array(raw)
}

// openAIMessages is the list of messages.
func openAIMessages(c *call) (json.RawMessage, error) {
	b := append(make([]byte, 0, c.size()), '[')
	for i := range c.Messages {
		m := &c.Messages[i]
		if m.Role == "placeholder" { // nothing was filled in
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		out := rawjson.Within(b).Str("role", m.Role)
		if len(m.Content) == 1 && m.Content[0].Kind == "text" { // the usual case, without a copy
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
		list[i] = rawjson.NewObject().Str("id", call.Id).Str("type", "function").Raw("function", functionOf(call)).End()
	}
	return rawjson.Array(list)
}

func functionOf(call prompt.ToolCall) json.RawMessage {
	return rawjson.NewObject().Str("name", call.Name).Str("arguments", call.Arguments).End()
}

// openAIContent is the content of a message that is not just one text: null for a call without words, else an array of content
// parts.
func (c *call) openAIContent(m *prompt.Message) (json.RawMessage, error) {
	switch {
	case len(m.Content) == 0 && (m.Role == "assistant" || m.Role == "function"):
		return json.RawMessage("null"), nil
	case len(m.Content) == 0:
		return rawjson.Quote(""), nil
	}
	parts := make([]json.RawMessage, 0, len(m.Content))
	for i := range m.Content {
		b := &m.Content[i]
		if b.IsUnfilled() {
			continue
		}
		if b.Kind != "text" && m.Role != "user" {
			return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.Role)
		}
		part, err := c.openAIPart(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return rawjson.Quote(""), nil
	}
	return rawjson.Array(parts), nil
}

// openAIPart is one content part of a chat completion.
func (c *call) openAIPart(b *prompt.Block) (json.RawMessage, error) {
	switch b.Kind {
	case "text":
		return rawjson.NewObject().Str("type", "text").Str("text", b.Text).End(), nil
	case "image_url", "media":
	default:
		return nil, c.cannotHold(b, "a chat completion; take it out, or set api_type of metadata.model to responses")
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		image := rawjson.NewObject().Str("url", f.asURL())
		if f.detail != nil {
			image = image.Raw("detail", f.detail)
		}
		return rawjson.NewObject().Str("type", "image_url").Raw("image_url", image.End()).End(), nil
	case f.is("audio") && f.data != "":
		return rawjson.NewObject().Str("type", "input_audio").Raw("input_audio", rawjson.NewObject().Str("data", f.data).Str("format", f.format()).End()).End(), nil
	case f.mime == "application/pdf" && f.data != "":
		return rawjson.NewObject().Str("type", "file").Raw("file", rawjson.NewObject().Str("filename", f.title).Str("file_data", f.asURL()).End()).End(), nil
	}
	return nil, c.cannotHold(b, "a chat completion, as %s; give an image, or audio or a PDF as a data: URL", f.describe())
}

// openAITools adds what the model may call. OpenAI refuses empty lists, and a choice without anything to choose from.
func openAITools(kwargs wire.Object, c *call) (wire.Object, error) {
	if len(c.Tools) == 0 {
		return kwargs, nil
	}
	list := make([]json.RawMessage, len(c.Tools))
	for i, t := range c.Tools {
		if t.Kind != "function" {
			return nil, cannotExpress(t.At, "is %q, and a chat completion takes functions only; set api_type of metadata.model to responses", language.Shorten(t.Kind))
		}
		list[i] = rawjson.NewObject().Str("type", "function").Raw("function", t.Raw).End()
	}
	kwargs = append(kwargs, rawjson.MemberOf("tools", rawjson.Array(list)))
	if c.Choice.Raw != nil {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}
	return kwargs, nil
}

// openAIResponses makes the arguments of client.responses.create.
func openAIResponses(c *call) (wire.Object, error) {
	kwargs := c.newKwargs("model")
	if !c.Chat {
		prompt, err := c.completionText()
		return c.withParameters(append(kwargs, rawjson.MemberOf("input", rawjson.Quote(prompt)))), err
	}
	if err := c.useTools(); err != nil {
		return nil, err
	}
	input := make([]json.RawMessage, 0, len(c.Messages))
	for i := range c.Messages {
		items, err := c.responseItems(&c.Messages[i])
		if err != nil {
			return nil, err
		}
		input = append(input, items...)
	}
	kwargs = append(kwargs, rawjson.MemberOf("input", rawjson.Array(input)))
	if len(c.Tools) == 0 {
		return c.withParameters(kwargs), nil
	}
	tools := make([]json.RawMessage, len(c.Tools))
	for i, t := range c.Tools {
		raw, err := c.responseTool(t)
		if err != nil {
			return nil, err
		}
		tools[i] = raw
	}
	kwargs = append(kwargs, rawjson.MemberOf("tools", rawjson.Array(tools)))
	switch c.Choice.Mode {
	case "":
	case "function":
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", rawjson.NewObject().Str("type", "function").Str("name", c.Choice.Name).End()))
	default:
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}
	return c.withParameters(kwargs), nil
}

// responseTool is a tool of the Responses API. A function is strict there unless it says otherwise, unlike in a chat completion.
func (c *call) responseTool(t prompt.Tool) (json.RawMessage, error) {
	if t.Kind != "function" {
		config, err := c.builtIn(t)
		if err != nil {
			return nil, err
		}
		return rawjson.Encode(append(wire.Object{rawjson.MemberOf("type", rawjson.Quote(t.Kind))}, rawjson.Without(config, "type")...)), nil
	}
	out := rawjson.NewObject().Str("type", "function").Str("name", t.Name)
	if t.Description != "" {
		out = out.Str("description", t.Description)
	}
	strict := rawjson.Member(t.Raw, "strict")
	if rawjson.IsNull(strict) {
		strict = json.RawMessage("false")
	}
	return out.Raw("parameters", schemaOf(&t)).Raw("strict", strict).End(), nil
}

// responsesItems are the types of blocks that are items of a response's input as they stand.
var responsesItems = strings.Fields("mcp_list_tools mcp_call mcp_approval_request mcp_approval_response shell_call shell_call_output apply_patch_call apply_patch_call_output")

// responseItems are the input items that stand for one message: its content, and each of its calls, in their order.
func (c *call) responseItems(m *prompt.Message) ([]json.RawMessage, error) {
	if m.Role == "placeholder" {
		return nil, nil
	}
	if m.Role == "tool" {
		output, err := c.messageText(m)
		return []json.RawMessage{rawjson.NewObject().Str("type", "function_call_output").Str("call_id", m.ToolCallID).Str("output", output).End()}, err
	}
	var items, parts []json.RawMessage
	flush := func() {
		if parts != nil {
			items = append(items, rawjson.NewObject().Str("role", m.Role).Raw("content", rawjson.Array(parts)).End())
			parts = nil
		}
	}
	for i := range m.Content {
		b := &m.Content[i]
		switch {
		case b.IsUnfilled():
		case slices.Contains(responsesItems, b.Kind):
			flush()
			items = append(items, rawjson.Encode(b.Raw))
		case b.Kind == "thinking" && b.Has("id"):
			flush()
			id, _ := b.Raw.Get("id")
			summary := rawjson.NewObject().Str("type", "summary_text").Str("text", b.Member("thinking")).End()
			items = append(items, rawjson.NewObject().Str("type", "reasoning").Raw("id", id).Raw("summary", rawjson.Array([]json.RawMessage{summary})).End())
		default:
			part, err := c.responsePart(m.Role, b)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	if parts == nil && items == nil && len(m.Calls) == 0 {
		parts = []json.RawMessage{}
	}
	flush()
	for _, call := range m.Calls {
		items = append(items, rawjson.NewObject().Str("type", "function_call").Str("call_id", call.Id).Str("name", call.Name).Str("arguments", call.Arguments).End())
	}
	return items, nil
}

func (c *call) responsePart(role string, b *prompt.Block) (json.RawMessage, error) {
	switch {
	case b.Kind == "text" && role == "assistant":
		return rawjson.NewObject().Str("type", "output_text").Str("text", b.Text).End(), nil
	case b.Kind == "text":
		return rawjson.NewObject().Str("type", "input_text").Str("text", b.Text).End(), nil
	case b.Kind != "image_url" && b.Kind != "media":
		return nil, c.cannotHold(b, "the input of a response; take it out")
	case role == "assistant":
		return nil, c.cannotHold(b, "a message of the role assistant; put it into one of the role user")
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		detail := f.detail
		if detail == nil {
			detail = rawjson.Quote("auto")
		}
		return rawjson.NewObject().Str("type", "input_image").Str("image_url", f.asURL()).Raw("detail", detail).End(), nil
	case f.data != "":
		return rawjson.NewObject().Str("type", "input_file").Str("filename", f.title).Str("file_data", f.asURL()).End(), nil
	}
	return rawjson.NewObject().Str("type", "input_file").Str("file_url", f.url).End(), nil
}
