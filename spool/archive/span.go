package archive

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"promptspool/api/calls/otel"
	"promptspool/api/calls/otel/dialect"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/rowcode"
)

// Span is what a record's state remembers of its span. Everything else is in the body,
// which is always kept.
type Span struct {
	TraceID  string     `json:"trace_id"` // 32 hexadecimal digits; "" if the body has none
	SpanID   string     `json:"span_id"`  // 16 hexadecimal digits
	ParentID string     `json:"parent_id,omitempty"`
	Name     string     `json:"name"`             // at most spanNameBytes of it
	Kind     string     `json:"kind,omitempty"`   // an otel.Kind
	Status   string     `json:"status,omitempty"` // SUCCESS, WARNING or ERROR
	Start    *time.Time `json:"start,omitempty"`
	End      *time.Time `json:"end,omitempty"`

	IsLog bool `json:"is_log,omitempty"` // a log record stands for it

	// Scope is the instrumentation that reports the span.
	Scope string `json:"scope,omitempty"`

	// LoggedAs is the span_id of the request by which an SDK logs the span's call itself; see Linked.
	LoggedAs string `json:"logged_as,omitempty"`
}

// unnamedScope is the scope of spans whose instrumentation does not say its name.
const unnamedScope = "unnamed"

// spanNameBytes bounds the name of a span in the state.
const spanNameBytes = 256

// readSpan reads the body of a span, as package otlp makes it. It takes what it can read:
// a sidecar has answered 200 to it.
func readSpan(body wire.Object) (s *Span, read otel.Span) {
	read = otel.ReadObject(body)
	s = &Span{
		SpanID:   rowcode.CutBytes(read.SpanID, 16),
		ParentID: rowcode.CutBytes(read.ParentID, 16),
		Name:     rowcode.CutBytes(read.Name, spanNameBytes),
		Kind:     rowcode.CutBytes(string(read.Kind), 16),
		Status:   read.Status,
		Start:    timeOrNil(read.Start),
		End:      timeOrNil(read.End),
	}
	if _, ok := ParseTrace(read.TraceID); ok {
		s.TraceID = read.TraceID
	}
	s.LoggedAs = rowcode.CutBytes(read.LoggedAs, 16)
	scope, _ := body.Get("scope")
	name, _ := jsonscan.Lookup(scope, "name")
	s.Scope = unnamedScope
	if len(name) > 2 && name[0] == '"' {
		s.Scope = rowcode.CutBytes(jsonscan.Unquote(name), spanNameBytes)
	}
	if read.Agent {
		s.Scope += " " + s.Name
	}

	return s, read
}

// bytes returns the length of the span's texts.
func (s *Span) bytes() int {
	return len(s.TraceID) + len(s.SpanID) + len(s.ParentID) + len(s.Name) + len(s.Kind) + len(s.Status) +
		len(s.LoggedAs) + len(s.Scope)
}

// span returns the record's span or, of a call that was logged with a trace, the span that it is in
// that trace; nil if it is in none.
func (s *State) span() *Span {
	if s.Span != nil {
		return &s.Span.Value
	}
	if s.Request == nil || s.Request.Value.TraceID == "" {
		return nil
	}

	r := &s.Request.Value
	span := &Span{
		TraceID:  r.TraceID,
		SpanID:   r.SpanID,
		ParentID: r.ParentSpanID,
		Name:     rowcode.CutBytes(r.FunctionName, spanNameBytes),
		Kind:     string(dialect.Call),
		Start:    r.Start,
		End:      r.End,
	}
	if span.SpanID == "" {
		span.SpanID = OwnSpanID(s.RequestID)
	}

	return span
}

// TraceID returns the id of the record's trace, "" if it is in none. A call may have it from another
// report of it.
func (s *State) TraceID() string {
	if span := s.span(); span != nil {
		return span.TraceID
	}
	if s.Linked != nil && s.Linked.TraceID != "" {
		return s.Linked.TraceID
	}
	if s.Request == nil {
		return ""
	}

	return s.shown().TraceID
}

// OwnSpanID returns the id of the span of a call that was logged without one.
func OwnSpanID(requestID string) string {
	id, _ := ParseUUID(requestID)
	return hex.EncodeToString(id[len(id)/2:])
}

// Trace returns TraceID in binary; ok is false if it has none.
func (s *State) Trace() (trace UUID, ok bool) { return ParseTrace(s.TraceID()) }

// traceText is the form that ParseTrace reads.
func traceText(trace UUID) string { return hex.EncodeToString(trace[:]) }

// ParseTrace reads the id of a trace: 32 hexadecimal digits.
func ParseTrace(text string) (trace UUID, ok bool) {
	id, err := hex.DecodeString(text)
	if err != nil || len(id) != len(trace) {
		return trace, false
	}
	return UUID(id), true
}

// ShownBody returns the body that View shows, out of those of the record's events.
func (s *State) ShownBody(bodies map[string]json.RawMessage) json.RawMessage {
	switch {
	case s.Joint != nil && s.Logs != "" && bodies[s.jointID()] != nil:
		return firstOf(bodies[s.jointID()])
	// A call that was logged says more than the span around it.
	case s.Request != nil:
		return bodies[s.Request.ID]
	case s.Span != nil:
		return bodies[s.Span.ID]
	}

	return nil
}

// ClosesTrace reports whether the record is not a span, but the event that closes a trace.
func (s *State) ClosesTrace() bool { return s.Span != nil && s.Span.Value.SpanID == closingSpan }

// closingSpan is an id that no span may have.
const closingSpan = "0000000000000000"

// Log is what an event of kind log says.
type Log struct {
	TraceID string
	SpanID  string

	At time.Time // zero if that is unknown

	// Joined is the id of the span's record, in the event by which 0.1.0 marks log records as joined.
	Joined string
}

// readLog reads the body of a log record, as package otlp makes it, or of its mark.
func readLog(body wire.Object) *Log {
	if joined, ok := body.Get("joined"); ok && joined[0] == '"' {
		return &Log{Joined: jsonscan.Unquote(joined)}
	}

	log, _ := body.Get("log")
	text := func(name string) string {
		value, ok := jsonscan.Lookup(log, name)
		if !ok || value[0] != '"' {
			return ""
		}
		return strings.ToLower(jsonscan.Unquote(value))
	}

	l := &Log{TraceID: text("traceId"), SpanID: text("spanId"), At: otel.LogTime(log)}

	return l
}

// SpanEvent returns the event of the record's span, read again from its body. ok is false if
// that cannot be read.
func (s *State) SpanEvent(body json.RawMessage) (e Event, ok bool) {
	object, err := wire.ParseObject(body)
	if err != nil {
		return e, false
	}

	e = Event{
		Event: wire.Event{
			ID:        s.Span.ID,
			RequestID: s.RequestID,
			Kind:      wire.KindSpan,
			Body:      body,
		},
		OrderTime: s.Span.At,
	}
	e.read(object)
	e.shorten()

	return e, true
}
