package otel

import (
	"cmp"
	"slices"
	"strings"
)

// flattened reads messages that are written as one attribute for each of their members:
// gen_ai.prompt.0.content, ...
func flattened(s *span, key, role string) (c conversation) {
	for _, m := range s.items(key) {
		c.flat(m, role)
	}

	return c
}

// items returns the items of a list that is flattened, by the key of a dialect's table for it.
func (s *span) items(key string) []attributes {
	prefix, _, _ := strings.Cut(key, "N.")
	return s.own.items(prefix)
}

// flat appends one message in OpenLLMetry's form.
func (c *conversation) flat(m attributes, role string) {
	b := builder{message: message{
		Role: cmp.Or(m.text("role"), role), ToolCallID: m.text("tool_call_id"), Refusal: m.text("refusal"),
	}}
	// A content of several parts is JSON.
	if content := m.get("content").inner(); content.isArray() && content.element().has("type") {
		for _, p := range content.elements() {
			b.part(p)
		}
	} else {
		b.say(m.get("content"))
	}
	b.calls(m.get("tool_calls"))
	for _, call := range m.items("tool_calls.") {
		b.ToolCalls = append(b.ToolCalls, newToolCall(call.text("id"), call.text("name"), call.get("arguments")))
	}
	c.take(&b, m.text("finish_reason"))
}

// inferenceMessages reads flattened messages.
func inferenceMessages(s *span, key, role string) (c conversation) {
	for _, m := range s.items(key) {
		c.inference(m, role)
	}

	return c
}

// inference appends one message.
func (c *conversation) inference(m attributes, role string) {
	role = cmp.Or(m.text("message.role"), role)
	b := builder{message: message{
		Role: role, Name: m.text("message.name"), ToolCallID: m.text("message.tool_call_id"),
	}}
	// Anthropic's, whose content may be a list of parts.
	if b.ToolCallID != "" && role == userRole {
		b.Role = "tool"
		b.content(m.get("message.content"))
	} else {
		b.say(m.get("message.content"))
	}
	for _, p := range m.items("message.contents.") {
		b.inferencePart(p)
	}

	if name := m.text("message.function_call_name"); name != "" {
		b.ToolCalls = append(b.ToolCalls, newToolCall("", name, m.get("message.function_call_arguments_json")))
	}
	// Anthropic's calls are among the contents, and usually here as well.
	seen := map[string]bool{}
	for _, call := range slices.Concat(m.items("message.tool_calls."), m.items("message.contents.")) {
		id, name := call.text("tool_call.id"), call.text("tool_call.function.name")
		if id+name == "" || seen[id] {
			continue
		}
		seen[id] = id != ""
		b.ToolCalls = append(b.ToolCalls, newToolCall(id, name, call.get("tool_call.function.arguments")))
	}
	c.take(&b, "")
}

// inferencePart adds one part of a message.
func (b *builder) inferencePart(p attributes) {
	text := p.get("message_content.text").shown()
	switch url := p.text("message_content.image.image.url"); {
	case url != "":
		b.add(encoded(map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}}))
	case p.text("message_content.type") == "reasoning":
		b.thinking(text)
	case text != "":
		b.text(text)
	default:
		if kind := p.text("message_content.type"); kind != "" && kind != "text" && kind != "tool_use" {
			b.add(encoded(map[string]string{"type": kind}))
		}
	}
}

// inferenceTexts reads messages of a text each.
func inferenceTexts(s *span, key, role string) (c conversation) {
	_, member, _ := strings.Cut(key, "N.")
	for _, m := range s.items(key) {
		c.text(role, m.text(member))
	}

	return c
}

func inferenceEmbeddings(s *span, key, _ string) (c conversation) {
	for _, e := range s.items(key) {
		if text := e.text("embedding.text"); text != "" {
			c.texts = append(c.texts, text)
		}
	}

	return c
}
