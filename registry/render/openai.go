package render

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
)

// openAI makes the arguments of client.chat.completions.create, client.completions.create or, with the api_type responses,
// client.responses.create of OpenAI's own clients, for OpenAI and for Azure, as its API reference has them: "Create chat
// completion" (https://platform.openai.com/docs/api-reference/chat/create), "Create completion"
// (https://platform.openai.com/docs/api-reference/completions/create), "Create a model response"
// (https://platform.openai.com/docs/api-reference/responses/create).
func openAI(c *call) (wire.Object, error) {
	switch normalAPI(c.provider, c.apiType) {
	case chatAPI:
	case "responses":
		return openAIResponses(c)
	default:
		return nil, inexpressible("api_type", "%q of metadata.model is not one that llm_kwargs can be made for; it may be chat.completions or responses", shorten(c.apiType))
	}
	kwargs := c.named("model")
	if !c.chat {
		prompt, err := c.completion()
		return c.parameterized(set(kwargs, "prompt", quoted(prompt))), err
	}
	messages, err := openAIMessages(c)
	if err != nil {
		return nil, err
	}
	kwargs = append(kwargs, memberOf("messages", messages))
	if kwargs, err = openAITools(kwargs, c); err != nil {
		return nil, err
	}
	if len(c.functions) > 0 {
		kwargs = append(kwargs, memberOf("functions", functionList(c.functions)))
		if c.call.raw != nil {
			kwargs = append(kwargs, memberOf("function_call", c.call.raw))
		}
	}
	return c.parameterized(kwargs), nil
}

func functionList(list []tool) json.RawMessage {
	raw := make([]json.RawMessage, len(list))
	for i, f := range list {
		raw[i] = f.raw
	}
	return array(raw)
}

// openAIMessages is the list of messages.
func openAIMessages(c *call) (json.RawMessage, error) {
	b := append(make([]byte, 0, c.size()), '[')
	for i := range c.messages {
		m := &c.messages[i]
		if m.role == "placeholder" { // nothing was filled in
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		out := within(b).str("role", m.role)
		if len(m.content) == 1 && m.content[0].kind == "text" { // the usual case, without a copy
			out = out.str("content", m.content[0].text)
		} else {
			content, err := c.openAIContent(m)
			if err != nil {
				return nil, err
			}
			out = out.raw("content", content)
		}
		if m.name != "" {
			out = out.str("name", m.name)
		}
		if m.functionCall != nil {
			out = out.raw("function_call", functionOf(*m.functionCall))
		}
		if m.toolCallID != "" {
			out = out.str("tool_call_id", m.toolCallID)
		}
		if len(m.calls) > 0 {
			out = out.raw("tool_calls", openAICalls(m.calls))
		}
		b = out.end()
	}
	return append(b, ']'), nil
}

// openAICalls writes tool calls in the form that several providers took over.
func openAICalls(calls []toolCall) json.RawMessage {
	list := make([]json.RawMessage, len(calls))
	for i, call := range calls {
		list[i] = newObject().str("id", call.id).str("type", "function").raw("function", functionOf(call)).end()
	}
	return array(list)
}

func functionOf(call toolCall) json.RawMessage {
	return newObject().str("name", call.name).str("arguments", call.arguments).end()
}

// openAIContent is the content of a message that is not just one text: null for a call without words, else an array of content
// parts.
func (c *call) openAIContent(m *message) (json.RawMessage, error) {
	switch {
	case len(m.content) == 0 && (m.role == "assistant" || m.role == "function"):
		return json.RawMessage("null"), nil
	case len(m.content) == 0:
		return quoted(""), nil
	}
	parts := make([]json.RawMessage, 0, len(m.content))
	for i := range m.content {
		b := &m.content[i]
		if b.unfilled() {
			continue
		}
		if b.kind != "text" && m.role != "user" {
			return nil, c.cannotHold(b, "a message of the role %s; put it into one of the role user", m.role)
		}
		part, err := c.openAIPart(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return quoted(""), nil
	}
	return array(parts), nil
}

// openAIPart is one content part of a chat completion.
func (c *call) openAIPart(b *block) (json.RawMessage, error) {
	switch b.kind {
	case "text":
		return newObject().str("type", "text").str("text", b.text).end(), nil
	case "image_url", "media":
	default:
		return nil, c.cannotHold(b, "a chat completion; take it out, or set api_type of metadata.model to responses")
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		image := newObject().str("url", f.asURL())
		if f.detail != nil {
			image = image.raw("detail", f.detail)
		}
		return newObject().str("type", "image_url").raw("image_url", image.end()).end(), nil
	case f.is("audio") && f.data != "":
		return newObject().str("type", "input_audio").raw("input_audio", newObject().str("data", f.data).str("format", f.format()).end()).end(), nil
	case f.mime == "application/pdf" && f.data != "":
		return newObject().str("type", "file").raw("file", newObject().str("filename", f.title).str("file_data", f.asURL()).end()).end(), nil
	}
	return nil, c.cannotHold(b, "a chat completion, as %s; give an image, or audio or a PDF as a data: URL", f.describe())
}

// openAITools adds what the model may call. OpenAI refuses empty lists, and a choice without anything to choose from.
func openAITools(kwargs wire.Object, c *call) (wire.Object, error) {
	if len(c.tools) == 0 {
		return kwargs, nil
	}
	list := make([]json.RawMessage, len(c.tools))
	for i, t := range c.tools {
		if t.kind != "function" {
			return nil, inexpressible(t.at, "is %q, and a chat completion takes functions only; set api_type of metadata.model to responses", shorten(t.kind))
		}
		list[i] = newObject().str("type", "function").raw("function", t.raw).end()
	}
	kwargs = append(kwargs, memberOf("tools", array(list)))
	if c.choice.raw != nil {
		kwargs = append(kwargs, memberOf("tool_choice", c.choice.raw))
	}
	return kwargs, nil
}

// openAIResponses makes the arguments of client.responses.create.
func openAIResponses(c *call) (wire.Object, error) {
	kwargs := c.named("model")
	if !c.chat {
		prompt, err := c.completion()
		return c.parameterized(append(kwargs, memberOf("input", quoted(prompt)))), err
	}
	if err := c.modernize(); err != nil {
		return nil, err
	}
	input := make([]json.RawMessage, 0, len(c.messages))
	for i := range c.messages {
		items, err := c.responseItems(&c.messages[i])
		if err != nil {
			return nil, err
		}
		input = append(input, items...)
	}
	kwargs = append(kwargs, memberOf("input", array(input)))
	if len(c.tools) == 0 {
		return c.parameterized(kwargs), nil
	}
	tools := make([]json.RawMessage, len(c.tools))
	for i, t := range c.tools {
		raw, err := c.responseTool(t)
		if err != nil {
			return nil, err
		}
		tools[i] = raw
	}
	kwargs = append(kwargs, memberOf("tools", array(tools)))
	switch c.choice.mode {
	case "":
	case "function":
		kwargs = append(kwargs, memberOf("tool_choice", newObject().str("type", "function").str("name", c.choice.name).end()))
	default:
		kwargs = append(kwargs, memberOf("tool_choice", c.choice.raw))
	}
	return c.parameterized(kwargs), nil
}

// responseTool is a tool of the Responses API. A function is strict there unless it says otherwise, unlike in a chat completion.
func (c *call) responseTool(t tool) (json.RawMessage, error) {
	if t.kind != "function" {
		config, err := c.builtIn(t)
		if err != nil {
			return nil, err
		}
		return encode(append(wire.Object{memberOf("type", quoted(t.kind))}, without(config, "type")...)), nil
	}
	out := newObject().str("type", "function").str("name", t.name)
	if t.description != "" {
		out = out.str("description", t.description)
	}
	strict := member(t.raw, "strict")
	if isNull(strict) {
		strict = json.RawMessage("false")
	}
	return out.raw("parameters", t.schema()).raw("strict", strict).end(), nil
}

// responsesItems are the types of blocks that are items of a response's input as they stand.
var responsesItems = strings.Fields("mcp_list_tools mcp_call mcp_approval_request mcp_approval_response shell_call shell_call_output apply_patch_call apply_patch_call_output")

// responseItems are the input items that stand for one message: its content, and each of its calls, in their order.
func (c *call) responseItems(m *message) ([]json.RawMessage, error) {
	if m.role == "placeholder" {
		return nil, nil
	}
	if m.role == "tool" {
		output, err := c.textOf(m)
		return []json.RawMessage{newObject().str("type", "function_call_output").str("call_id", m.toolCallID).str("output", output).end()}, err
	}
	var items, parts []json.RawMessage
	flush := func() {
		if parts != nil {
			items = append(items, newObject().str("role", m.role).raw("content", array(parts)).end())
			parts = nil
		}
	}
	for i := range m.content {
		b := &m.content[i]
		switch {
		case b.unfilled():
		case slices.Contains(responsesItems, b.kind):
			flush()
			items = append(items, encode(b.raw))
		case b.kind == "thinking" && b.has("id"):
			flush()
			id, _ := b.raw.Get("id")
			summary := newObject().str("type", "summary_text").str("text", b.member("thinking")).end()
			items = append(items, newObject().str("type", "reasoning").raw("id", id).raw("summary", array([]json.RawMessage{summary})).end())
		default:
			part, err := c.responsePart(m.role, b)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	if parts == nil && items == nil && len(m.calls) == 0 {
		parts = []json.RawMessage{}
	}
	flush()
	for _, call := range m.calls {
		items = append(items, newObject().str("type", "function_call").str("call_id", call.id).str("name", call.name).str("arguments", call.arguments).end())
	}
	return items, nil
}

func (c *call) responsePart(role string, b *block) (json.RawMessage, error) {
	switch {
	case b.kind == "text" && role == "assistant":
		return newObject().str("type", "output_text").str("text", b.text).end(), nil
	case b.kind == "text":
		return newObject().str("type", "input_text").str("text", b.text).end(), nil
	case b.kind != "image_url" && b.kind != "media":
		return nil, c.cannotHold(b, "the input of a response; take it out")
	case role == "assistant":
		return nil, c.cannotHold(b, "a message of the role assistant; put it into one of the role user")
	}
	f := fileOf(b)
	switch {
	case f.is("image"):
		detail := f.detail
		if detail == nil {
			detail = quoted("auto")
		}
		return newObject().str("type", "input_image").str("image_url", f.asURL()).raw("detail", detail).end(), nil
	case f.data != "":
		return newObject().str("type", "input_file").str("filename", f.title).str("file_data", f.asURL()).end(), nil
	}
	return newObject().str("type", "input_file").str("file_url", f.url).end(), nil
}
