package api

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"promptspool/api/edge"
	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// bulk collects the events and the answer of one request of /spans-bulk.
type bulk struct {
	exported
	answer wire.SpansTaken
	note   string // about times that were read in another unit than they should have
}

// spansBulk takes the spans of the hosted service's SDKs, and answers when all of them are durable.
func (a *API) spansBulk(c *exchange) error {
	spans, ok := c.object.Get("spans")
	if !ok || spans[0] != '[' {
		return wire.Invalid(wire.FieldError{Field: "spans", Reason: "must be an array"})
	}
	q, err := wire.DecodeQuery[wire.CloseQuery](c.query())
	if err != nil {
		return err
	}
	inBody, _ := c.object.Get("close_after")
	b := bulk{
		exported: exported{
			a:        a,
			c:        c,
			kind:     otlp.Spans,
			closing:  q.CloseAfter || string(inBody) == "true",
			rejected: map[string]string{},
		},
		answer: wire.SpansTaken{
			Success:         true,
			Spans:           []wire.SpanTaken{},
			RequestLogs:     []wire.RequestLogged{},
			RejectedSpanIDs: []string{},
		},
	}
	release, err := b.claim()
	if err != nil {
		return err
	}
	defer release()
	unread, err := otlp.Bulk(b.c.context, spans, b.add, b.reject)
	if err != nil {
		return err
	}
	if err := b.end(); err != nil {
		return err
	}

	b.refused.Spans += unread.Spans
	b.answer.Message = cmp.Or(b.count(), b.note)
	b.takeBack()
	if unread.Spans > 0 {
		// They are the last ones, and may be too many to be listed.
		b.answer.Message = fmt.Sprintf("The last %d spans were not read: %s.", unread.Spans, unread.Reason)
	}
	edge.WriteJSON(c.ctx, 201, b.answer)

	return nil
}

// add collects a span, and the request that it was sent with.
func (b *bulk) add(s otlp.BulkSpan) error {
	// A caller that logs a request with a span wants the span, whatever it is about.
	s.Plumbing = s.Plumbing && s.LogRequest == nil
	b.note = cmp.Or(b.note, s.Note)
	dropped := b.refused.Dropped
	recordID, eventID, err := b.addSpan(s.Span)
	if err != nil {
		return err
	}

	spanID := hex.EncodeToString(s.SpanID[:])
	switch {
	case recordID != "":
		b.answer.Spans = append(b.answer.Spans, wire.SpanTaken{
			ID:      recordID,
			Name:    s.Name,
			SpanID:  spanID,
			EventID: eventID,
		})
	case b.refused.Dropped == dropped:
		b.answer.RejectedSpanIDs = append(b.answer.RejectedSpanIDs, spanID)
	}
	if recordID == "" || s.LogRequest == nil {
		return nil
	}

	return b.addRequest(s, recordID, spanID)
}

// addRequest collects the request that a span was sent with. Without its own id it has the
// span's, so that both are one record. Every id is derived: a request that is sent again logs once.
func (b *bulk) addRequest(s otlp.BulkSpan, recordID, spanID string) error {
	body := withTimes(s.LogRequest, s.Start, s.End)
	var w wire.LogWrite
	object, err := wire.ParseObject(body)
	if err == nil {
		w, err = wire.DecodeLog(object, b.a.c.Clock.Now())
	}
	if err == nil {
		err = b.a.mayScore(b.exported.c, w)
	}
	if err != nil {
		e := wire.AsError(err).Body()
		b.rejectLog(spanID, e.Fields)
		b.refuse("log_request: " + e.Message)
		return nil
	}

	b.note = cmp.Or(b.note, strings.TrimSpace(w.Note))
	if w.RequestID != "" {
		recordID = w.RequestID
	}
	request, err := b.event(wire.KindRequest, recordID, body)
	if err != nil {
		return err
	}
	request.Link = w.Link()
	b.answer.RequestLogs = append(b.answer.RequestLogs, wire.RequestLogged{
		ID:      recordID,
		SpanID:  spanID,
		EventID: request.ID,
	})
	if err := b.queue(request); err != nil || w.Score == nil {
		return err
	}

	_, err = b.exported.add(wire.KindScore, recordID, scoreBody(recordID, w.ScoreName, *w.Score))

	return err
}

// withTimes returns a copy of a log-request that has the span's times where it has none.
func withTimes(request json.RawMessage, start, end uint64) []byte {
	times := map[string]uint64{"request_start_time": start, "request_end_time": end}
	b := []byte{'{'}
	for m := range jsonscan.Members(request) {
		if _, isTime := times[m.Name]; isTime && string(m.Value) == "null" {
			continue
		}
		delete(times, m.Name)
		b = append(append(b, request[m.Start:m.End]...), ',')
	}

	// In a fixed order: the same request must be the same event.
	for _, name := range []string{"request_start_time", "request_end_time"} {
		if nanos := times[name]; nanos > 0 && nanos <= math.MaxInt64 {
			at := time.Unix(0, int64(nanos)).UTC()
			b = append(jsonscan.AppendString(b, name), ':')
			b = append(jsonscan.AppendString(b, at.Format(time.RFC3339Nano)), ',')
		}
	}

	return append(bytes.TrimSuffix(b, []byte(",")), '}')
}

// reject notes a span that cannot be kept.
func (b *bulk) reject(spanID, reason string) {
	b.answer.RejectedSpanIDs = append(b.answer.RejectedSpanIDs, spanID)
	b.refuse(reason)
}

// rejectLog notes a log_request that cannot be kept.
func (b *bulk) rejectLog(spanID string, fields []wire.FieldError) {
	rejected := wire.RequestRejected{SpanID: spanID, Fields: fields}
	b.answer.RejectedRequestLogs = append(b.answer.RejectedRequestLogs, rejected)
}

// takeBack takes from the answer what the recorder has refused. It waits until all of the
// request is recorded: the last event of a batch is refused before the answer has it.
func (b *bulk) takeBack() {
	if len(b.rejected) == 0 {
		return
	}

	b.answer.Spans = slices.DeleteFunc(b.answer.Spans, func(s wire.SpanTaken) bool {
		_, rejected := b.rejected[s.EventID]
		if rejected {
			b.answer.RejectedSpanIDs = append(b.answer.RejectedSpanIDs, s.SpanID)
		}
		return rejected
	})
	b.answer.RequestLogs = slices.DeleteFunc(b.answer.RequestLogs, func(r wire.RequestLogged) bool {
		reason, rejected := b.rejected[r.EventID]
		if rejected {
			fields := []wire.FieldError{{Field: "log_request", Reason: reason}}
			b.rejectLog(r.SpanID, fields)
		}
		return rejected
	})
}

// closeTrace closes a trace. That is an event like a span, so a sidecar takes it while the server
// is away, and does not know of another one before.
func (a *API) closeTrace(c *exchange) error {
	trace, err := hex.DecodeString(c.ident)
	if err != nil || len(trace) != 16 {
		return wire.Errorf(wire.CodeNotFound, "There is no such trace: a trace id must have 32 hexadecimal digits.")
	}

	x := exported{a: a, c: c, kind: otlp.Spans}
	e, err := x.event(wire.KindSpan, wire.CloseRecordID([16]byte(trace)), otlp.Close([16]byte(trace)))
	if err != nil {
		return err
	}
	// Two requests may come together. The recorder knows which one was first.
	results, err := a.recordAll(c, e)
	if err != nil {
		return err
	}
	if results[0].Code == wire.ResultDuplicate && a.c.Records != nil {
		return errClosed(hex.EncodeToString(trace))
	}
	edge.WriteJSON(c.ctx, 201, wire.TraceClosed{
		Success: true,
		Message: "Trace closed.",
		TraceID: hex.EncodeToString(trace),
	})

	return nil
}

// errClosed is the 409 for traces that are closed.
func errClosed(traces ...string) error {
	e := wire.Errorf(wire.CodeConflict, "The trace is closed. Send spans with a new trace id.")
	e.TraceIDs = traces
	return e
}

// closedTracesMax is how many traces of a request are looked up. Who closes a trace sends
// few of them at a time, and a request must not cost a lookup for each of thousands.
const closedTracesMax = 4

// isClosed reports whether a trace was closed before the request.
func (x *exported) isClosed(trace [16]byte) (closed bool, err error) {
	if x.a.c.Records == nil && !x.closing {
		return false, nil
	}
	if closed, known := x.traces[trace]; known {
		return closed, nil
	}

	if x.a.c.Records != nil && len(x.traces) < closedTracesMax {
		closed, err = x.a.c.Records.IsClosed(x.c.context, x.c.id, trace)
	}
	if x.traces == nil {
		x.traces = map[[16]byte]bool{}
	}
	// Beyond those that are looked up, only a request that closes its traces must know them.
	if len(x.traces) < closedTracesMax || x.closing {
		x.traces[trace] = closed
	}

	return closed, err
}

// closeTraces closes the traces of the request, if that is wanted. Its error is a conflict if all
// spans of the request were of closed traces.
func (x *exported) closeTraces() error {
	var closed []string
	for trace, was := range x.traces {
		if was {
			closed = append(closed, hex.EncodeToString(trace[:]))
		}
	}
	if !x.taken && len(closed) > 0 {
		slices.Sort(closed)
		return errClosed(closed...)
	}
	if !x.closing {
		return nil
	}

	for trace := range x.traces {
		if _, err := x.add(wire.KindSpan, wire.CloseRecordID(trace), otlp.Close(trace)); err != nil {
			return err
		}
	}

	return nil
}
