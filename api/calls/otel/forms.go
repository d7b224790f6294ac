package otel

import (
	"strings"

	"promptspool/api/calls/otel/dialect"
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
	if len(text) > 1 && text[0] == '"' && validText(text) {
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
	for name, v := range objectOf(request.at("config")) {
		members[name] = v
	}
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
