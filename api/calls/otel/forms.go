package otel

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire/jsonscan"
)

// readers read what a source of content holds. role is that of a message that names none.
var readers = [...]func(s *span, key, role string) conversation{
	dialect.Anything:            anything,
	dialect.Messages:            messages,
	dialect.MessageEvents:       messageEvents,
	dialect.ContentEvent:        contentEvent,
	dialect.EventList:           eventList,
	dialect.Flattened:           flattened,
	dialect.InferenceMessages:   inferenceMessages,
	dialect.InferenceTexts:      inferenceTexts,
	dialect.InferenceEmbeddings: inferenceEmbeddings,
	dialect.EmbeddedTexts:       embeddedTexts,
	dialect.VercelResponse:      vercelResponse,
	dialect.SentryResponse:      sentryResponse,
	dialect.TextAndCalls:        textAndCalls,
	dialect.ADKRequest:          adkRequest,
	dialect.ADKResponse:         adkResponse,
	dialect.GenkitRequest:       genkitRequest,
	dialect.GenkitResponse:      genkitResponse,
	dialect.Said:                said,
	dialect.GeminiChunks:        geminiChunks,
}

// The usual roles of what went in, and of what came out.
const (
	userRole      = "user"
	assistantRole = "assistant"
)

// sources returns those of what went in or came out, by its role.
func sources(d *dialect.Dialect, role string) []dialect.Source {
	if role == userRole {
		return d.Input
	}
	return d.Output
}

// content returns what went in or came out, from the first source that has anything.
func (s *span) content(role string) conversation {
	for _, d := range s.tables.dialects {
		for _, from := range sources(d, role) {
			if c := readers[from.Form](s, from.Key, role); !c.empty() {
				return c
			}
		}
	}

	return conversation{}
}

func messages(s *span, key, role string) conversation { return messagesOf(s.own.get(key), role) }

// embeddedTexts reads the texts of an embedding, each of which may be JSON.
func embeddedTexts(s *span, key, _ string) conversation {
	var c conversation
	v := s.own.get(key).inner()
	values := v.elements()
	if v.isText() {
		values = []value{v}
	}
	for _, e := range values {
		c.texts = append(c.texts, unquoted(e))
	}

	return c
}

// unquoted returns the text of a JSON string that is itself in a string.
func unquoted(v value) string {
	text := v.shown()
	if len(text) > 1 && text[0] == '"' && jsonscan.Valid([]byte(text)) {
		return value(text).text()
	}

	return text
}

// vercelResponse reads the answer, which has an attribute for each of its parts.
func vercelResponse(s *span, key, role string) (c conversation) {
	prefix, _, _ := strings.Cut(key, "text")
	b := builder{message: message{Role: role}}
	b.thinking(s.own.text(prefix + "reasoning"))
	b.text(s.own.text(prefix+"text", prefix+"object"))
	b.calls(s.own.get(prefix + "toolCalls"))
	c.take(&b, "")

	return c
}

// sentryResponse reads the answer, which has an attribute for its texts and one for its calls.
func sentryResponse(s *span, _, role string) (c conversation) {
	b := builder{message: message{Role: role}}
	b.content(s.own.get("gen_ai.response.text"))
	b.calls(s.own.get("gen_ai.response.tool_calls"))
	c.take(&b, "")

	return c
}

// textAndCalls reads an answer that has its text and its calls in one object, perhaps in a message.
func textAndCalls(s *span, key, role string) (c conversation) {
	answer := s.own.get(key).inner()
	b := builder{message: message{Role: role, Refusal: answer.at("message").texts("refusal")}}
	b.content(answer.at("message", "content"))
	b.text(answer.texts("combined_chunk_content", "text"))
	b.calls(answer.at("message", "tool_calls"))
	b.calls(answer.at("toolCalls"))
	for i, call := range b.ToolCalls {
		// Of Anthropic's calls Logfire has the whole input as an argument.
		arguments := quoted(call.Function.Arguments).inner()
		if input := arguments.at("input"); s.scope == "logfire.anthropic" && input != nil {
			b.ToolCalls[i].Function.Arguments = string(input)
		}
	}
	c.take(&b, "")

	return c
}

// adkRequest reads Gemini's request.
func adkRequest(s *span, key, _ string) conversation {
	request := s.own.get(key).inner()
	// {} and <not serializable> are nothing.
	if !request.has("contents", "config") {
		return conversation{}
	}

	return conversation{raw: request}
}

// adkResponse reads a response, which is one candidate of Gemini's with its usage beside it.
func adkResponse(s *span, key, _ string) conversation {
	response := s.own.get(key).inner()
	if !response.has("content", "finish_reason", "finishReason", "usage_metadata") {
		return conversation{}
	}

	members := map[string]any{"candidates": []map[string]value{{
		"content": response.at("content"), "finish_reason": response.first("finish_reason", "finishReason"),
	}}}
	if counts := response.at("usage_metadata"); counts.isObject() {
		members["usage_metadata"] = counts
	}

	return conversation{raw: encoded(members)}
}

// genkitRequest reads a request, whose messages have parts of Genkit's own, which package calls reads.
// The model is the span's name, after its plugin.
func genkitRequest(s *span, key, role string) conversation {
	request := s.own.get(key).inner()
	if !request.isObject() {
		return oneText(role, request.shown())
	}

	members := objectOf(request)
	maps.Copy(members, objectOf(request.at("config")))
	delete(members, "config")
	_, model, _ := strings.Cut(s.own.text("genkit:name"), "/")
	members["model"] = quoted(model)

	return conversation{raw: encoded(members)}
}

// genkitResponse reads the provider's own answer, or else what Genkit made of it.
func genkitResponse(s *span, key, role string) conversation {
	response := s.own.get(key).inner()
	if raw := response.first("raw", "custom"); isResponse(raw) {
		return conversation{raw: raw}
	}

	var c conversation
	finish := response.texts("finishReason")
	if m := response.at("message"); m.isObject() {
		c.append(withRole(m, role), finish)
	}

	return c
}

// messageRoles are the events of one message each, and the roles of those.
var messageRoles = map[string]string{
	"gen_ai.system.message": "system", "gen_ai.user.message": "user",
	"gen_ai.assistant.message": "assistant", "gen_ai.tool.message": "tool",
}

// messageEvents reads the span's own events.
func messageEvents(s *span, _, role string) conversation { return eventsOf(s.events, role) }

// eventsOf reads the messages of what went in, or the choices that came out.
func eventsOf(events []event, role string) conversation {
	if role == userRole {
		return inputEvents(events)
	}
	return outputEvents(events)
}

func inputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if role := messageRoles[e.name]; role != "" {
			c.event(e, role)
		}
	}

	return c
}

func outputEvents(events []event) conversation {
	var c conversation
	for _, e := range events {
		if e.name != "gen_ai.choice" {
			continue
		}

		finish := e.at("finish_reason").text()
		switch m := e.at("message").inner(); {
		case m.isObject():
			before := len(c.messages)
			c.event(event{body: m}, "assistant")
			for i := before; i < len(c.finish); i++ {
				c.finish[i] = finish
			}
		case m.isArray():
			b := builder{message: message{Role: "assistant"}}
			b.content(m)
			c.take(&b, finish)
		case m.isText():
			c.add(message{Role: "assistant", Content: m.text()}, finish)
		default:
			c.event(e, "assistant")
		}
	}

	return c
}

// event appends the message that an event holds.
func (c *conversation) event(e event, role string) {
	// Older versions of Semantic Kernel have the whole message as JSON.
	if whole := e.at("gen_ai.event.content").inner(); whole.isObject() {
		if m := whole.at("message"); m.isObject() {
			whole = m
		}
		e = event{body: whole}
	}
	role = cmp.Or(e.at("role").text(), role)
	b := builder{message: message{Role: role, Name: e.at("name").text()}}
	if role == "tool" {
		b.ToolCallID = e.at("id").text()
	}
	b.content(e.at("content"))
	b.calls(e.at("tool_calls"))
	c.take(&b, e.at("finish_reason").text())
}

// contentEvent reads the event that holds everything that went in or came out; key names
// both.
func contentEvent(s *span, key, role string) conversation {
	event, key, _ := strings.Cut(strings.TrimPrefix(key, "event "), ": ")
	return contentOf(s.event(event).at(key), role)
}

// eventList reads the list of events that older versions of Pydantic AI, and Logfire, have in one
// attribute. Those of Gemini have no names.
func eventList(s *span, key, role string) conversation {
	if !strings.HasPrefix(s.scope, "pydantic-ai") && s.own.text("logfire.span_type") == "" {
		return conversation{}
	}

	var events []event
	answered := false
	for _, e := range s.own.get(key).inner().elements() {
		name := e.texts("event.name")
		switch {
		case name == "" && e.has("message"):
			name = "gen_ai.choice"
		case name == "":
			name = "gen_ai." + e.texts("role") + ".message"
		}
		answered = answered || name == "gen_ai.choice"
		events = append(events, event{name: name, body: e})
	}
	// Of OpenAI's responses the answer is a message like those before it.
	for i := len(events) - 1; i >= 0 && !answered && events[i].name == "gen_ai.assistant.message"; i-- {
		events[i].name = "gen_ai.choice"
	}

	return eventsOf(events, role)
}

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
