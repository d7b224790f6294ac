package otel

import "strings"

// flattened reads messages that are written as one attribute for each of their members:
// gen_ai.prompt.0.content, ...
func flattened(s *span, key, role string) (c conversation) {
	prefix, _, _ := strings.Cut(key, "N.")
	for _, m := range s.own.items(prefix) {
		c.flat(m, role)
	}

	return c
}

// flat appends one message in OpenLLMetry's form.
func (c *conversation) flat(m attributes, role string) {
	if own := m.text("role"); own != "" {
		role = strings.ToLower(own)
	}

	b := builder{message: message{Role: role, ToolCallID: m.text("tool_call_id"), Refusal: m.text("refusal")}}
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
