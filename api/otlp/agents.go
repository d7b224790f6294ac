package otlp

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Coding agents put their model calls, prompts and tools into log records, with or without ids of a
// trace. Such a record becomes a span, which everything that reads spans knows.

// agentNames are how the names of their log records begin.
var agentNames = strings.Fields("claude_code. codex. gemini_cli.")

// streamEvents are those that Codex logs for each piece of an answer. One without tokens and without
// an error is to the answer what a span of HTTP is to a call.
var streamEvents = strings.Fields("codex.sse_event codex.websocket_event")

// streamSpans are those that Codex makes of each piece, once with tokens, and else rarely with an event.
var streamSpans = strings.Fields("handle_responses receiving")

// agentKeys are the attributes that the span of a record is made with.
var agentKeys = strings.Fields(`
	session.id conversation.id prompt.id prompt_id duration_ms event.timestamp error error.message success
	input_token_count`)

// agentName returns the name of a coding agent's log record, and "" of any other. Claude Code has its
// full name in the body, and Codex the line of its source in eventName.
func (p *logRecord) agentName(attribute text, body []byte) string {
	for _, t := range []text{p.event, attribute, scalar(p.writtenBody.of(body))} {
		name := t.beginning(scopeBytes)
		if begins(name, agentNames) && !bytes.ContainsRune(name, ' ') {
			return string(name)
		}
	}

	return ""
}

// scalar returns the text of a written AnyValue.
func scalar(value []byte) text {
	if len(value) > 0 {
		if c := jsonscan.Enter(value, 0); c.Next() {
			return jsonText(value[c.At:jsonscan.SkipValue(value, c.At)])
		}
	}

	return text{}
}

// span returns the span of a coding agent's log record. from is where the record begins in what was
// written: without what it was sent with, so that one that is sent again is the same span.
func (p *logRecord) span(name string, body []byte, from int) *parts {
	said := map[string]string{}
	for key, value := range written(p.written.of(body)) {
		if slices.Contains(agentKeys, string(key)) {
			said[string(key)] = string(scalar(value).beginning(wordMax))
		}
	}
	failed := said["error"]+said["error.message"] != "" || said["success"] == "false"

	id := sha256.Sum256(body[from:])
	s := &parts{
		traceID:           p.traceID,
		spanID:            id[:8],
		name:              text{b: []byte(name)},
		start:             p.time(),
		attributes:        p.attributes,
		droppedAttributes: p.droppedAttributes,
		noise:             slices.Contains(streamEvents, name) && said["input_token_count"] == "" && !failed,
	}
	if failed {
		s.code = []byte("2")
	}
	if at, ok := wire.ParseTime(said["event.timestamp"]); ok && s.start == 0 {
		s.start = uint64(max(at.UnixNano(), 0))
	}
	// Without a duration it has no end: how long it took is unknown.
	millis, _ := strconv.ParseFloat(said["duration_ms"], 64)
	if nanos := millis * 1e6; nanos > 0 && nanos < float64(s.start) {
		s.start, s.end = s.start-uint64(nanos), s.start
	}
	s.place(p, cmp.Or(said["session.id"], said["conversation.id"]), cmp.Or(said["prompt.id"], said["prompt_id"]))

	return s
}

// place places the span of a coding agent's log record in the record's trace or, without one, in that
// of its session.
func (s *parts) place(p *logRecord, session, turn string) {
	if len(p.traceID) == 16 && !isZero(p.traceID) {
		if len(p.spanID) == 8 {
			s.parent = shownID(p.spanID)
		}
		return
	}

	trace := sha256.Sum256([]byte(cmp.Or(session, string(s.spanID))))
	s.traceID = trace[:16]
	// The prompt is the turn: all else hangs below it, whichever comes first.
	top := sha256.Sum256([]byte(turn))
	switch {
	case turn == "":
	case bytes.HasSuffix(s.name.b, []byte(".user_prompt")):
		s.spanID = top[:8]
	default:
		s.parent = shownID(top[:8])
	}
}
