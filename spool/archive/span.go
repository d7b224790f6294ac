package archive

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
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

	// LoggedAs is the span_id of the request by which an SDK logs the span's call itself; see
	// State.Link.
	LoggedAs string `json:"logged_as,omitempty"`
}

// spanNameBytes bounds the name of a span in the state.
const spanNameBytes = 256

// readSpan reads the body of a span, as package otlp makes it. It takes what it can read:
// a sidecar has answered 200 to it.
func readSpan(body wire.Object) (s *Span, read otel.Span) {
	read = otel.ReadObject(body)
	s = &Span{
		SpanID:   cut(read.SpanID, 16),
		ParentID: cut(read.ParentID, 16),
		Name:     cut(read.Name, spanNameBytes),
		Kind:     cut(string(read.Kind), 16),
		Status:   read.Status,
		Start:    timeOrNil(read.Start),
		End:      timeOrNil(read.End),
	}
	if _, ok := ParseTrace(read.TraceID); ok {
		s.TraceID = read.TraceID
	}
	if _, ok := linkKey(read.LoggedAs, 0); ok {
		s.LoggedAs = read.LoggedAs
	}

	return s, read
}

// cut returns at most n bytes of a text, in whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}

	return text[:n]
}

// bytes returns the length of the span's texts.
func (s *Span) bytes() int {
	return len(s.TraceID) + len(s.SpanID) + len(s.ParentID) + len(s.Name) + len(s.Kind) + len(s.Status) +
		len(s.LoggedAs)
}

// Trace returns the trace of the record's span; ok is false if it has none.
func (s *State) Trace() (trace UUID, ok bool) {
	if s.Span == nil {
		return trace, false
	}
	return ParseTrace(s.Span.Value.TraceID)
}

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
	// A call that was logged says more than the span around it.
	case s.Request != nil:
		return bodies[s.Request.ID]
	case s.Span != nil:
		return bodies[s.Span.ID]
	}

	return nil
}

// Trace returns the spans of a trace of the identity's account, by their start.
func (a *Archive) Trace(ctx context.Context, id wire.Identity, trace string) (wire.Trace, error) {
	if err := checkAccount(id); err != nil {
		return wire.Trace{}, err
	}
	parsed, ok := ParseTrace(strings.ToLower(trace))
	if !ok {
		return wire.Trace{}, wire.Errorf(wire.CodeNotFound,
			"There is no such trace: a trace id must have 32 hexadecimal digits.")
	}

	answer := wire.Trace{Success: true, TraceID: hex.EncodeToString(parsed[:]), Spans: []wire.TraceSpan{}}
	after := ""
	for {
		states, more, err := a.config.Store.Trace(ctx, id.Account, parsed, after, traceStep)
		if err != nil {
			return wire.Trace{}, err
		}

		// Of each state only these few fields stay in memory.
		spans := traceSpans(states)
		if err := a.linkSpans(ctx, id.Account, states, spans); err != nil {
			return wire.Trace{}, err
		}
		answer.Spans = append(answer.Spans, spans...)
		answer.Closed = answer.Closed || slices.ContainsFunc(states, func(s State) bool { return s.closesTrace() })
		if answer.Truncated = more && len(answer.Spans) >= wire.TraceSpansMax; answer.Truncated || !more {
			break
		}
		after = states[len(states)-1].RequestID
	}
	if len(answer.Spans) == 0 && !answer.Closed {
		return wire.Trace{}, wire.Errorf(wire.CodeNotFound, "This account has no trace %.32s. If a sidecar "+
			"has just accepted its spans, they may still be on their way.", trace)
	}

	// Stores list them by id, which need not be in the order of time.
	sort.Slice(answer.Spans, func(i, j int) bool {
		a, b := &answer.Spans[i], &answer.Spans[j]
		return cmp.Or(startOf(a).Compare(startOf(b)), cmp.Compare(a.ID, b.ID)) < 0
	})

	return answer, nil
}

// closesTrace reports whether the record is not a span, but the event that closes a trace.
func (s *State) closesTrace() bool { return s.Span != nil && s.Span.Value.SpanID == closingSpan }

// closingSpan is an id that no span may have.
const closingSpan = "0000000000000000"

// IsClosed reports whether a trace of the identity's account was closed.
func (a *Archive) IsClosed(ctx context.Context, id wire.Identity, trace [16]byte) (bool, error) {
	if err := checkAccount(id); err != nil {
		return false, err
	}

	_, _, err := a.config.Store.Record(ctx, id.Account, wire.CloseRecordID(trace))
	if wire.IsCode(err, wire.CodeNotFound) {
		return false, nil
	}
	return err == nil, err
}

// traceStep is how many records of a trace are read at a time.
const traceStep = 500

// traceSpans returns the spans of states as a trace shows them.
func traceSpans(states []State) []wire.TraceSpan {
	spans := make([]wire.TraceSpan, 0, len(states))
	for i := range states {
		s := &states[i]
		if s.Span == nil || s.closesTrace() {
			continue
		}

		v := &s.Span.Value
		span := wire.TraceSpan{
			ID:        s.RequestID,
			Name:      v.Name,
			SpanID:    v.SpanID,
			Kind:      v.Kind,
			Status:    v.Status,
			StartTime: v.Start,
			EndTime:   v.End,
		}
		if v.ParentID != "" {
			span.ParentID = &v.ParentID
		}
		if s.Listed() {
			span.RequestLogID = &s.RequestID
		}
		if s.Request != nil {
			r := &s.Request.Value
			span.Status, span.Price = r.Status, dollars(r.Price)
			span.InputTokens, span.OutputTokens = r.InputTokens, r.OutputTokens
		}
		spans = append(spans, span)
	}

	return spans
}

// startOf returns when a span began; the zero time if that is unknown.
func startOf(s *wire.TraceSpan) time.Time {
	if s.StartTime == nil {
		return time.Time{}
	}
	return *s.StartTime
}
