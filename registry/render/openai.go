package render

import (
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// openAI makes the arguments of client.chat.completions.create or client.completions.create of OpenAI's own clients, as
// OpenAI's API reference has them ("Create chat completion", "Create completion").
func openAI(c call) (wire.Object, error) {
	switch c.model.apiType {
	case "", "chat.completions", "chat-completions", "completions":
	default:
		return nil, inexpressible("api_type", "%q of metadata.model is not one that this version makes llm_kwargs for; it knows chat.completions", shorten(c.model.apiType))
	}
	var kwargs wire.Object
	if c.model.name != "" {
		kwargs = append(kwargs, wire.Member{Name: "model", Value: quoted(c.model.name)})
	}
	if kind, _ := c.blueprint.Get("type"); text(kind) == "completion" {
		prompt, err := openAIPrompt(c.blueprint)
		return set(kwargs, "prompt", quoted(prompt)), err
	}
	messages, err := openAIMessages(c.blueprint)
	if err != nil {
		return nil, err
	}
	kwargs = set(kwargs, "messages", array(messages))
	return openAITools(kwargs, c.blueprint)
}

// inexpressible is the 422 for what OpenAI's client has no place for.
func inexpressible(path, format string, args ...any) error {
	return wire.Invalid(wire.FieldError{Field: path, Reason: fmt.Sprintf(format, args...)})
}

// openAIPrompt joins the text blocks of a completion.
func openAIPrompt(blueprint wire.Object) (string, error) {
	var prompt strings.Builder
	content, _ := blueprint.Get("content")
	for i, b := range elements(content) {
		if kind := text(member(b, "type")); kind != "text" {
			return "", inexpressible(fmt.Sprintf("prompt_template.content[%d]", i), "is %q, and a completion of OpenAI takes text only", shorten(kind))
		}
		prompt.WriteString(text(member(b, "text")))
	}
	return prompt.String(), nil
}

func openAIMessages(blueprint wire.Object) ([]json.RawMessage, error) {
	raw, _ := blueprint.Get("messages")
	messages := []json.RawMessage{}
	for i, m := range elements(raw) {
		o := object(m)
		role, _ := o.Get("role")
		if text(role) == "placeholder" { // nothing was given for it
			continue
		}
		message, err := openAIMessage(fmt.Sprintf("prompt_template.messages[%d]", i), text(role), o)
		if err != nil {
			return nil, err
		}
		messages = append(messages, encode(message))
	}
	return messages, nil
}

// openAIMessage keeps the members that OpenAI knows; those that are ours (input_variables, template_format) stay behind.
func openAIMessage(path, role string, m wire.Object) (wire.Object, error) {
	raw, _ := m.Get("content")
	content, err := openAIContent(path+".content", role, raw)
	if err != nil {
		return nil, err
	}
	out := wire.Object{{Name: "role", Value: quoted(role)}, {Name: "content", Value: content}}
	for _, name := range []string{"name", "function_call", "tool_call_id"} {
		if v, ok := m.Get(name); ok {
			out = set(out, name, v)
		}
	}
	raw, _ = m.Get("tool_calls")
	var calls []json.RawMessage
	for _, c := range elements(raw) {
		calls = append(calls, encode(wire.Object{
			{Name: "id", Value: member(c, "id")},
			{Name: "type", Value: quoted("function")},
			{Name: "function", Value: member(c, "function")},
		}))
	}
	if calls != nil {
		out = set(out, "tool_calls", array(calls))
	}
	return out, nil
}

// openAIContent is a string for one block of text, null for a call without words, else an array of content parts.
func openAIContent(path, role string, raw json.RawMessage) (json.RawMessage, error) {
	blocks := elements(raw)
	parts := make([]json.RawMessage, len(blocks))
	for i, b := range blocks {
		part, err := openAIPart(fmt.Sprintf("%s[%d]", path, i), object(b))
		if err != nil {
			return nil, err
		}
		parts[i] = encode(part)
	}
	switch {
	case len(blocks) == 0 && (role == "assistant" || role == "function"):
		return json.RawMessage("null"), nil
	case len(blocks) == 0:
		return quoted(""), nil
	case len(blocks) == 1 && text(member(blocks[0], "type")) == "text":
		return member(blocks[0], "text"), nil
	}
	return array(parts), nil
}

func openAIPart(path string, b wire.Object) (wire.Object, error) {
	kind, _ := b.Get("type")
	switch text(kind) {
	case "text":
		words, _ := b.Get("text")
		return textBlock(words), nil
	case "image_url":
		if _, ok := b.Get("image_variable"); ok {
			return nil, inexpressible(path+".image_variable", "is not supported by this version; write the variable into image_url.url, as {name}")
		}
		raw, _ := b.Get("image_url")
		var image wire.Object
		for _, name := range []string{"url", "detail"} {
			if v, ok := object(raw).Get(name); ok {
				image = set(image, name, v)
			}
		}
		return wire.Object{{Name: "type", Value: kind}, {Name: "image_url", Value: encode(image)}}, nil
	}
	return nil, inexpressible(path, "is %q, which a message to OpenAI cannot hold", shorten(text(kind)))
}

// openAITools adds what the model may call. OpenAI refuses empty lists, and a choice without anything to choose from.
func openAITools(kwargs, blueprint wire.Object) (wire.Object, error) {
	raw, _ := blueprint.Get("tools")
	var tools []json.RawMessage
	for i, e := range elements(raw) {
		kind := text(member(e, "type"))
		if kind != "" && kind != "function" {
			return nil, inexpressible(fmt.Sprintf("prompt_template.tools[%d]", i), "is %q, and a chat completion of OpenAI takes functions only", shorten(kind))
		}
		tools = append(tools, encode(wire.Object{{Name: "type", Value: quoted("function")}, {Name: "function", Value: member(e, "function")}}))
	}
	if tools != nil {
		kwargs = set(kwargs, "tools", array(tools))
		kwargs = copyMember(kwargs, blueprint, "tool_choice")
	}
	if raw, _ := blueprint.Get("functions"); len(elements(raw)) > 0 {
		kwargs = set(kwargs, "functions", raw)
		kwargs = copyMember(kwargs, blueprint, "function_call")
	}
	return kwargs, nil
}

func copyMember(to, from wire.Object, name string) wire.Object {
	if v, ok := from.Get(name); ok {
		return set(to, name, v)
	}
	return to
}
