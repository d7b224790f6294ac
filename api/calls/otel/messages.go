package otel

import (
	"cmp"
	"slices"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire/jsonscan"
)

// conversation is what went into a call, or came out.
type conversation struct {
	// messages are in a form that package calls reads: OpenAI's, or that of the provider.
	messages []value
	finish   []string // of each message its finish reason, or ""

	raw   value    // a provider's own request or response, in place of messages
	texts []string // of an embedding
}

func (c *conversation) empty() bool {
	return len(c.messages) == 0 && c.raw.absent() && len(c.texts) == 0
}

// message is a message in OpenAI's form.
type message struct {
	Role       string
	Name       string
	Content    any // a text, also as a value, or a list of parts
	ToolCalls  []toolCall
	ToolCallID string
	Refusal    string
}

func (m message) members(o *object) {
	o.addText("role", m.Role)
	o.addText("name", m.Name)
	if m.Content != nil {
		o.add("content", m.Content)
	}
	if len(m.ToolCalls) > 0 {
		o.add("tool_calls", m.ToolCalls)
	}
	o.addText("tool_call_id", m.ToolCallID)
	o.addText("refusal", m.Refusal)
}

type toolCall struct {
	ID       string
	Function function
}

func (c toolCall) members(o *object) {
	o.addText("id", c.ID)
	o.add("type", "function")
	o.add("function", c.Function)
}

type function struct {
	Name      string
	Arguments string
}

func (f function) members(o *object) {
	o.add("name", f.Name)
	o.add("arguments", f.Arguments)
}

func newToolCall(id, name string, arguments value) toolCall {
	return toolCall{ID: id, Function: function{name, arguments.shown()}}
}

// add appends a message.
func (c *conversation) add(m message, finish string) { c.append(appendObject(nil, m), finish) }

// take appends the messages of a builder.
func (c *conversation) take(b *builder, finish string) {
	b.flush()
	for _, m := range b.done {
		c.add(m, finish)
	}
}

// append appends a message that is JSON already. One that nests too deep becomes text.
func (c *conversation) append(m value, finish string) {
	if !shallow(m) {
		m = encoded(message{Role: m.at("role").text(), Content: string(m)})
	}
	c.messages = append(c.messages, m)
	c.finish = append(c.finish, finish)
}

// oneText returns a conversation of one text.
func oneText(role, text string) (c conversation) {
	c.text(role, text)
	return c
}

// text appends a message of a text, unless that is empty.
func (c *conversation) text(role, text string) {
	if text != "" {
		c.add(message{Role: role, Content: text}, "")
	}
}

// messagesOf reads a list of messages, one message, or a text in their place. role is
// that of a message that names none.
func messagesOf(list value, role string) conversation {
	var c conversation
	parsed := list.inner()
	if nested := parsed.element(); nested.isArray() {
		// LangChain's lists of lists: of one prompt each.
		parsed = nested
	}

	switch {
	case parsed.isObject():
		c.message(parsed, role)
	case list.isText() && !parsed.element().isObject():
		// A text in brackets is still a text.
		return oneText(role, list.text())
	default:
		for _, m := range parsed.elements() {
			c.message(m, role)
		}
	}

	return c
}

// message appends a message of any form.
func (c *conversation) message(m value, role string) {
	if !m.isObject() {
		c.text(role, m.shown())
		return
	}

	finish := m.texts("finish_reason")
	parts := m.first("parts", "content").inner()
	if !needConversion(parts) {
		c.append(withRole(m, role), finish)
		return
	}

	b := builder{message: message{Role: cmp.Or(m.texts("role"), role), Name: m.texts("name")}}
	for _, p := range parts.elements() {
		b.part(p)
	}
	b.calls(m.at("tool_calls"))
	c.take(&b, finish)
}

// withRole gives a message the usual role if it names none.
func withRole(m value, role string) value {
	if role == "" || m.has("role", "author", "type", "lc", "data") {
		return m
	}
	if m[jsonscan.SkipSpace(m, 1)] == '}' {
		return m
	}

	return value(`{"role":"` + role + `",` + string(m[1:]))
}

// converted are the types of parts that package calls does not read, or not under these
// names.
var converted = map[string]bool{
	"tool_call": true, "tool_call_response": true, "server_tool_call": true, "server_tool_call_response": true,
	"tool-call": true, "tool-result": true, "compaction": true,
}

// needConversion reports whether parts are written as the GenAI conventions or the Vercel
// AI SDK write them.
func needConversion(parts value) bool {
	for _, p := range parts.elements() {
		kind := p.texts("type")
		if converted[kind] || kind != "" && !p.has(kind) && p.has("content") && kind != "tool_result" ||
			kind == "reasoning" && p.has("text") {
			return true
		}
	}

	return false
}

// builder makes messages in OpenAI's form out of parts. Results of tools become separate
// messages.
type builder struct {
	message
	parts []value
	done  []message
}

// flush ends the current message, if it has anything.
func (b *builder) flush() {
	if len(b.parts) == 0 && len(b.ToolCalls) == 0 {
		return
	}

	m := b.message
	if len(b.parts) > 0 {
		m.Content = b.parts
	}
	// A lone text is simpler as such.
	if only := b.parts; len(only) == 1 && only[0].texts("type") == "text" {
		m.Content = quoted("")
		if text := only[0].at("text"); text.isText() {
			m.Content = text
		}
	}
	b.done = append(b.done, m)
	b.parts, b.ToolCalls = nil, nil
}

// content adds the parts of a list, one part, a content of Gemini's with its role, or what another
// value shows.
func (b *builder) content(v value) {
	parts := v.inner()
	if nested := parts.at("parts"); nested.isArray() {
		if role := parts.texts("role"); role != "" && b.Role != "system" {
			b.Role = role
		}
		parts = nested
	}
	switch {
	case v.isObject() && b.Role != "tool" && v.has("type", "text", "inline_data", "function_call"):
		b.part(v)
	case !parts.isArray():
		b.say(v)
	}
	for _, p := range parts.elements() {
		b.part(p)
	}
}

// calls adds those of a list, or a single one, which may be JSON in a text.
func (b *builder) calls(list value) {
	list = list.inner()
	if list.isObject() {
		b.call(list)
	}
	for _, call := range list.elements() {
		b.call(call)
	}
}

// part adds one part.
func (b *builder) part(p value) {
	if p.isText() {
		b.say(p)
		return
	}

	switch p.texts("type") {
	case "reasoning", "thinking":
		b.thinking(p.first("content", "text", "thinking").shown())
	case "tool_call", "tool-call", "server_tool_call":
		b.call(p)
	case "tool_call_response", "tool-result", "server_tool_call_response":
		b.result(p)
	case "blob", "uri", "binary", "image", "file", "image-url", "document-url", "audio-url", "video-url":
		// Package calls reads them as they are written.
		b.add(p)
	default:
		if content := p.first("content", "text"); content != nil && string(p.at("thought")) != "true" {
			b.say(content)
		} else {
			// Package calls reads them as Gemini and Bedrock have them.
			b.add(p)
		}
	}
}

// say adds what a value shows: a text, or JSON as a text.
func (b *builder) say(v value) {
	switch {
	case v.absent() || string(v) == `""`:
	case v.isText():
		// As it is written: prompts are long.
		b.add(textPart("text", v))
	default:
		b.text(string(v))
	}
}

func (b *builder) text(text string) {
	if text != "" {
		b.add(textPart("text", quoted(text)))
	}
}

// add adds a part as it is.
func (b *builder) add(part value) { b.parts = append(b.parts, part) }

func (b *builder) thinking(text string) {
	if text != "" {
		b.add(textPart("thinking", quoted(text)))
	}
}

// textPart returns a part that has its text in a member of the name of its type.
func textPart(kind string, text value) value {
	part := make([]byte, 0, len(text)+2*len(kind)+len(`{"type":"","":}`))
	part = append(part, `{"type":"`+kind+`","`+kind+`":`...)

	return append(append(part, text...), '}')
}

// call adds a call of a tool, in any of the forms.
func (b *builder) call(p value) {
	f := p
	if nested := p.at("function"); nested.isObject() {
		f = nested
	}
	id := p.texts("call_id", "id", "toolCallId", "tool_call_id")
	name := f.texts("name", "toolName", "tool_name")
	arguments := f.first("arguments", "input", "args", "server_tool_call")
	// Empty values would become many times their bytes.
	if id == "" && name == "" && arguments.absent() {
		return
	}
	b.ToolCalls = append(b.ToolCalls, newToolCall(id, name, arguments))
}

// result adds what a tool answered.
func (b *builder) result(p value) {
	b.flush()
	answer := p.first("response", "result", "output", "server_tool_call_response", "content")
	if kind := answer.texts("type"); kind != "" && answer.has("value") {
		// The AI SDK tells a text from JSON.
		answer = answer.at("value")
	}
	b.done = append(b.done, message{
		Role:       "tool",
		Name:       p.texts("name", "toolName"),
		ToolCallID: p.texts("id", "toolCallId", "tool_call_id"),
		Content:    answer.shown(),
	})
}

// tools returns the definitions of the tools that a call could use, in OpenAI's form.
func (s *span) tools() []value {
	var list []value
	for _, t := range s.own.items("llm.tools.") {
		list = append(list, tool(t.get("tool.json_schema")))
	}
	for _, f := range s.own.items("llm.request.functions.") {
		list = append(list, definition(f.text("name"), f.text("description"), f.get("parameters").inner()))
	}
	if len(list) == 0 {
		for _, t := range s.find(dialect.Tools).inner().elements() {
			list = append(list, tool(t))
		}
	}
	if len(list) == 0 {
		for _, t := range s.rawResponse().at("tools").elements() {
			list = append(list, tool(t))
		}
	}
	for _, t := range s.own.get("model_request_parameters").inner().at("function_tools").elements() {
		if len(list) == 0 || s.find(dialect.Tools) == nil {
			list = append(list, tool(t))
		}
	}

	return slices.DeleteFunc(list, func(t value) bool { return t == nil || !shallow(t) })
}

// tool returns one definition. The conventions and the AI SDK have no function member.
func tool(t value) value {
	t = t.inner()
	switch {
	case !t.isObject():
		return nil
	case t.at("name").isText() && !t.has("function", "input_schema"):
		return definition(t.texts("name"), t.texts("description"),
			t.first("parameters", "inputSchema", "parameters_json_schema", "input_schema"))
	}

	return t
}

func definition(name, description string, schema value) value {
	if name == "" {
		return nil
	}
	function := map[string]any{"name": name}
	if description != "" {
		function["description"] = description
	}
	if schema.isObject() {
		function["parameters"] = schema
	}

	return encoded(map[string]any{"type": "function", "function": function})
}
