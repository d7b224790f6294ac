package otel

import (
	"fmt"
	"strings"

	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
)

// notExported stands for what an agent was not allowed to export.
const notExported = "not exported"

// isCovered reports whether a text stands for one that an agent was not allowed to export.
func isCovered(text string) bool { return text == "<REDACTED>" || text == "[REDACTED]" }

// takeAgent sets what is different with the spans of coding agents.
func (s *span) takeAgent(r *Span) {
	if key := dialect.Withheld[r.Name]; key != "" {
		if text := s.own.text(key); text == "" || isCovered(text) {
			r.Metadata["content"] = notExported
			if !r.IsCall() {
				r.Input = notExported
			}
		}
	}
}

// isCodex reports whether the span is one of Codex, which has one for each event of a stream: that
// of the last event is the call, which began before.
func (s *span) isCodex() bool { return s.tables == ofAgents && strings.HasPrefix(s.scope, "codex") }

// codexID returns an id of a response, which has none: the log record and the span of a call have
// the same tokens at the same time.
func (s *span) codexID() value {
	in := s.count(dialect.InputTokens)
	if in == nil {
		return nil
	}

	return quoted(fmt.Sprintf("codex:%06d:%06d:%06d:%06d", *in, wire.OrZero(s.count(dialect.OutputTokens)),
		wire.OrZero(s.count(dialect.CachedTokens)), wire.OrZero(s.count(dialect.ReasoningTokens))))
}

// said reads a text.
func said(s *span, key, role string) conversation {
	text := s.own.text(key)
	if isCovered(text) {
		return conversation{}
	}

	return oneText(role, text)
}

// geminiChunks reads the pieces of Gemini's answer as one message.
func geminiChunks(s *span, key, role string) conversation {
	var c conversation
	var text, thoughts strings.Builder
	b, finish := builder{message: message{Role: role}}, ""
	for _, chunk := range s.own.get(key).inner().elements() {
		candidate := chunk.at("candidates").element()
		if reason := candidate.texts("finishReason"); reason != "" {
			finish = reason
		}
		for _, part := range candidate.at("content", "parts").elements() {
			switch call := part.at("functionCall"); {
			case call.isObject():
				b.call(call)
			case string(part.at("thought")) == "true":
				thoughts.WriteString(part.texts("text"))
			default:
				text.WriteString(part.texts("text"))
			}
		}
	}
	b.thinking(thoughts.String())
	b.text(text.String())
	c.take(&b, finish)

	return c
}
