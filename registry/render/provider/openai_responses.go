package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/registry/render/prompt"
	"promptspool/registry/render/rawjson"
)

// openAIResponses makes the arguments of client.responses.create. See "Create a model
// response" (https://platform.openai.com/docs/api-reference/responses/create).
func openAIResponses(c *call) (wire.Object, error) {
	kwargs := c.newKwargs("model")
	if !c.Chat {
		text, err := c.completionText()
		return append(kwargs, rawjson.MemberOf("input", rawjson.Quote(text))), err
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
	kwargs, err := c.withTools(kwargs, c.responseTool)
	if err != nil || len(c.Tools) == 0 {
		return kwargs, err
	}

	if c.Choice.Mode == "function" {
		return c.withChoice(kwargs, choices{"function": `{"type":"function","name":NAME}`})
	}
	if c.Choice.Mode != "" {
		kwargs = append(kwargs, rawjson.MemberOf("tool_choice", c.Choice.Raw))
	}

	return kwargs, nil
}

// responseTool writes a tool of the Responses API. Unlike in a chat completion, a
// function is strict there unless it says otherwise.
func (c *call) responseTool(t prompt.Tool) (json.RawMessage, error) {
	if t.Kind != "function" {
		config, err := c.builtIn(t)
		if err != nil {
			return nil, err
		}
		out := wire.Object{rawjson.MemberOf("type", rawjson.Quote(t.Kind))}
		return rawjson.Encode(append(out, rawjson.Without(config, "type")...)), nil
	}

	out := rawjson.NewObject().Str("type", "function").Str("name", t.Name)
	if t.Description != "" {
		out = out.Str("description", t.Description)
	}
	// Strict schemas forbid what a template that was written for chat completions may
	// have.
	strict := rawjson.Member(t.Raw, "strict")
	if rawjson.IsNull(strict) {
		strict = json.RawMessage("false")
	}

	return out.Raw("parameters", schemaOf(&t)).Raw("strict", strict).End(), nil
}

// responseItemKinds lists the types of blocks that are items of a response's input as
// they are.
var responseItemKinds = strings.Fields(`
	mcp_list_tools mcp_call mcp_approval_request mcp_approval_response shell_call shell_call_output
	apply_patch_call apply_patch_call_output`)

// responseItems writes the input items of one message: its content, and each of its
// calls, in their order.
func (c *call) responseItems(m *prompt.Message) ([]json.RawMessage, error) {
	if m.Role == "placeholder" {
		return nil, nil
	}
	if m.Role == "tool" {
		output, err := c.messageText(m)
		return []json.RawMessage{rawjson.NewObject().
			Str("type", "function_call_output").
			Str("call_id", m.ToolCallID).
			Str("output", output).
			End()}, err
	}

	// Consecutive parts form one item; a block that is an item itself ends it.
	var items, parts []json.RawMessage
	flush := func() {
		if parts != nil {
			item := rawjson.NewObject().Str("role", m.Role).Raw("content", rawjson.Array(parts)).End()
			items = append(items, item)
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
			part, err := c.responsePart(m.Role, b)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	if parts == nil && items == nil && len(m.Calls) == 0 {
		// An empty message stays one.
		parts = []json.RawMessage{}
	}
	flush()

	for _, call := range m.Calls {
		items = append(items, rawjson.NewObject().
			Str("type", "function_call").
			Str("call_id", call.ID).
			Str("name", call.Name).
			Str("arguments", call.Arguments).
			End())
	}

	return items, nil
}

func reasoningItem(b *prompt.Block) json.RawMessage {
	id, _ := b.Raw.Get("id")
	summary := rawjson.NewObject().
		Str("type", "summary_text").
		Str("text", b.StringMember("thinking")).
		End()

	return rawjson.NewObject().
		Str("type", "reasoning").
		Raw("id", id).
		Raw("summary", rawjson.Array([]json.RawMessage{summary})).
		End()
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
		return rawjson.NewObject().
			Str("type", "input_image").
			Str("image_url", f.asURL()).
			Raw("detail", detail).
			End(), nil

	case f.data != "":
		return rawjson.NewObject().
			Str("type", "input_file").
			Str("filename", f.title).
			Str("file_data", f.asURL()).
			End(), nil
	}

	return rawjson.NewObject().Str("type", "input_file").Str("file_url", f.url).End(), nil
}
