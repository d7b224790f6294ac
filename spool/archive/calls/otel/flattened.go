package otel

import "strings"

// flattened reads messages that are written as one attribute for each of their members:
// gen_ai.prompt.0.content, ...
func flattened(role string) func(*span, string) conversation {
	return func(s *span, key string) conversation {
		prefix, _, _ := strings.Cut(key, "N.")
		var c conversation
		for _, m := range s.own.items(prefix) {
			c.flat(m, role)
		}
		return c
	}
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
	for _, call := range m.get("tool_calls").inner().elements() {
		b.call(call)
	}
	for _, call := range m.items("tool_calls.") {
		b.ToolCalls = append(b.ToolCalls, newToolCall(call.text("id"), call.text("name"), call.get("arguments")))
	}
	for _, done := range b.close() {
		c.add(done, m.text("finish_reason"))
	}
}
