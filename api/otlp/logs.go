package otlp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Log is one decoded log record about a model call.
type Log struct {
	TraceID [16]byte // of the span that it belongs to
	SpanID  [8]byte
	At      uint64          // nanoseconds since 1970, 0 if it has no time
	Body    json.RawMessage // as the package comment shows it; the receiver owns it
}

// Logs decodes a request for /v1/logs and calls take with the events about model calls, in
// their order. It calls takeSpan with the log records of coding agents, and drops all others.
// Otherwise it is like Traces.
func Logs(
	ctx context.Context, body []byte, form Form, take func(Log) error, takeSpan func(Span) error,
) (Refused, error) {
	places := map[[24]byte]uint64{}

	d := newDecoding(ctx, len(body))
	d.signal = &logs
	d.keep = func(it item, body []byte) item {
		p := it.(*logRecord)
		said := p.said(body)
		if name := p.agentName(said["event.name"], body); name != "" {
			return p.span(name, said, body[d.behind.scope:])
		}
		// Older libraries name the event with an attribute.
		event := cmp.Or(string(p.event.beginning(wordMax)), said["event.name"])
		if !strings.HasPrefix(event, genAI) {
			return nil
		}
		p = p.withIDs(event, said["gen_ai.response.id"], body[d.behind.scope:])

		// All messages of a call may have the same time, so their order must be kept. It
		// counts within their span: what is sent along does not matter.
		if p.check() == nil {
			id := [24]byte(append(p.traceID[:16:16], p.spanID...))
			p.index = places[id]
			places[id]++
		}
		return p
	}
	d.take = func(it item, body []byte) error {
		if s, ok := it.(*parts); ok {
			return takeSpan(s.decoded(body, s.noise))
		}
		p := it.(*logRecord)
		return take(Log{
			TraceID: [16]byte(p.traceID),
			SpanID:  [8]byte(p.spanID),
			At:      p.time(),
			Body:    body,
		})
	}

	return decode(body, form, d)
}

// logs is the signal of log records.
var logs = signalOf("resourceLogs", "scopeLogs", "instrumentationLibraryLogs", "logRecords",
	func(v value) (item, error) {
		p := new(logRecord)
		return p, logLayout.read(p, v)
	})

// errUnjoined is why an event about a model call cannot be kept.
var errUnjoined = errors.New("an event about a model call must have the traceId and the spanId of the call's span")

// The names of the events that are kept without a span: one judges a call, one is all
// about it.
const (
	Evaluation = "gen_ai.evaluation.result"
	Details    = "gen_ai.client.inference.operation.details"
)

// withIDs returns the log record, if it names no span but is kept, with the ids of one. An
// evaluation gets those that ResponseIDs has for its call. The details of a call get ids that are a
// hash of the record.
func (p *logRecord) withIDs(event, responseID string, record []byte) *logRecord {
	joined := *p
	switch {
	case p.check() == nil:
		return p
	case event == Details:
		id := sha256.Sum256(record)
		joined.traceID, joined.spanID = id[:16], id[16:24]
	case event == Evaluation && responseID != "":
		trace, span := ResponseIDs(responseID)
		joined.traceID, joined.spanID = trace[:], span[:]
	}

	return &joined
}

// ResponseIDs returns the ids of a trace and a span that stand for the call with a provider's
// response id. No other span has them.
func ResponseIDs(responseID string) (trace [16]byte, span [8]byte) {
	sum := sha256.Sum256([]byte("gen_ai.response.id " + responseID))
	copy(trace[:], sum[:])
	copy(span[:], sum[len(trace):])

	return trace, span
}

// logRecord is what a log record is written from.
type logRecord struct {
	at, observed      uint64
	severity          []byte // JSON
	severityText      text
	event             text
	body              list // a value
	attributes        list
	droppedAttributes uint64
	flags             uint64
	traceID, spanID   []byte
	index             uint64 // its place among the records of its span in the request

	written     place // of its attributes
	writtenBody place
}

// time returns when the event was, or else when it was first seen.
func (p *logRecord) time() uint64 {
	if p.at != 0 {
		return p.at
	}
	return p.observed
}

// genAI is how the names of all events of the GenAI conventions begin.
const genAI = "gen_ai."

// said returns the beginnings of the attributes that decide what becomes of the record. body is what
// was written of it.
func (p *logRecord) said(body []byte) map[string]string {
	said := map[string]string{}
	for key, value := range written(p.written.of(body)) {
		if slices.Contains(deciding, string(key)) {
			said[string(key)] = string(scalar(value).beginning(wordMax))
		}
	}

	return said
}

func (p *logRecord) check() error {
	if len(p.traceID) != 16 || isZero(p.traceID) || len(p.spanID) != 8 || isZero(p.spanID) {
		return errUnjoined
	}
	return nil
}

// write writes the log record after its scope.
func (p *logRecord) write(o *output) {
	o.put(`,"log":{`)
	o.nanos("timeUnixNano", p.at)
	o.nanos("observedTimeUnixNano", p.observed)
	o.raw("severityNumber", p.severity)
	o.text("severityText", p.severityText)
	o.text("eventName", p.event)

	p.writtenBody = o.value("body", p.body)
	p.written = o.list("attributes", p.attributes)
	o.number("droppedAttributesCount", p.droppedAttributes)
	o.number("flags", p.flags)
	o.id("traceId", p.traceID)
	o.id("spanId", p.spanID)
	o.end()
}

// close writes the log record's place and closes its body.
func (p *logRecord) close(o *output) {
	o.put(`,"index":`)
	o.digits(p.index)
	o.end()
}

// logLayout is the layout of a LogRecord.
var logLayout = layout[logRecord]{
	set(1, "timeUnixNano", func(p *logRecord, v value) { p.at = v.uint() }),
	set(2, "severityNumber", func(p *logRecord, v value) { p.severity = v.enum("", nil) }),
	set(3, "severityText", func(p *logRecord, v value) { p.severityText = v.text() }),
	set(5, "body", func(p *logRecord, v value) { p.body = list{v, writeBody} }),
	set(6, "attributes", func(p *logRecord, v value) { p.attributes = list{v, writeAttributes} }),
	set(7, "droppedAttributesCount", func(p *logRecord, v value) { p.droppedAttributes = v.uint() }),
	set(8, "flags", func(p *logRecord, v value) { p.flags = v.uint() }),
	set(9, "traceId", func(p *logRecord, v value) { p.traceID = v.id(16) }),
	set(10, "spanId", func(p *logRecord, v value) { p.spanID = v.id(8) }),
	set(11, "observedTimeUnixNano", func(p *logRecord, v value) { p.observed = v.uint() }),
	set(12, "eventName", func(p *logRecord, v value) { p.event = v.text() }),
}

// Coding agents put their model calls, prompts and tools into log records, with or without ids of a
// trace. Such a record becomes a span, which everything that reads spans knows.

// agentNames are how the names of their log records begin.
var agentNames = strings.Fields("claude_code. codex. gemini_cli.")

// streamEvents are those that Codex logs for each piece of an answer. One without tokens and without
// an error is to the answer what a span of HTTP is to a call.
var streamEvents = strings.Fields("codex.sse_event codex.websocket_event")

// streamSpans are those that Codex makes of each piece, once with tokens, and else rarely with an event.
var streamSpans = strings.Fields("handle_responses receiving")

// deciding are the attributes that name an event or its call, or that the span of an agent's record is
// made with.
var deciding = strings.Fields(`
	event.name gen_ai.response.id session.id conversation.id prompt.id prompt_id duration_ms event.timestamp error
	error.message success input_token_count`)

// agentName returns the name of a coding agent's log record, and "" of any other. Claude Code has its
// full name in the body, and Codex the line of its source in eventName.
func (p *logRecord) agentName(attribute string, body []byte) string {
	content := scalar(p.writtenBody.of(body))
	for _, name := range []string{
		string(p.event.beginning(scopeBytes)), attribute, string(content.beginning(scopeBytes)),
	} {
		if begins(name, agentNames) && !strings.Contains(name, " ") {
			return name
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

// span returns the span of a coding agent's log record, which is what was written without what it
// was sent with: one that is sent again is the same span.
func (p *logRecord) span(name string, said map[string]string, record []byte) *parts {
	failed := said["error"]+said["error.message"] != "" || said["success"] == "false"

	id := sha256.Sum256(record)
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
