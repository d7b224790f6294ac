package archive

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/calls/otel"
)

// Some libraries send the messages of a traced call, and judgements of it, as log records
// beside its span. These have a record of their own (wire.LogRecordID), because their
// senders do not know the span's start, and wait there for their span as orphans do.
//
// Whichever comes last, the span or its log records, joins them: the span's record gets an
// event with the span and all its log records so far, which stands before the span alone.
// Its id derives from its content, so that joining again changes nothing. The log records
// are then marked, and no longer wait.

// joinBytesMax bounds what is joined at a time: with each further log record the span is
// written anew.
const joinBytesMax = 4 << 20 // of the bodies

// joinPages bounds how many steps of a trace are looked at for the span of a log record.
const joinPages = 4

// Log is what an event of kind log says.
type Log struct {
	TraceID string
	SpanID  string

	// Joined is the id of the span's record, in the event that marks log records as joined.
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

	return &Log{TraceID: text("traceId"), SpanID: text("spanId")}
}

// spanKey names a span.
type spanKey struct {
	trace UUID
	span  [8]byte
}

// keyOf reads the ids of a span; ok is false if one is malformed.
func keyOf(traceID, spanID string) (key spanKey, ok bool) {
	key.trace, ok = ParseTrace(traceID)
	span, err := hex.DecodeString(spanID)
	if !ok || err != nil || len(span) != len(key.span) {
		return key, false
	}
	key.span = [8]byte(span)

	return key, true
}

// joining is a span whose log records may have to be joined.
type joining struct {
	spanRecord string              // "" until it is found
	logRecords map[string]struct{} // ids
}

// joinings are the spans of a batch.
type joinings map[spanKey]*joining

// of returns the joining of a span.
func (all joinings) of(key spanKey) *joining {
	if all[key] == nil {
		all[key] = &joining{logRecords: map[string]struct{}{}}
	}

	return all[key]
}

// joinLogs joins the spans and log records of a batch that was just applied, with each
// other and with earlier ones. Of a batch that is sent again after a crash it joins the
// same. Two batches at the same time are both durable before either looks, so that one of
// them sees the other.
func (a *Archive) joinLogs(ctx context.Context, account string, events []Event) error {
	found := joinings{}
	for i := range events {
		if e := &events[i]; e.Log != nil {
			if key, ok := keyOf(e.Log.TraceID, e.Log.SpanID); ok {
				found.of(key).logRecords[e.RequestID] = struct{}{}
			}
		}
	}
	if err := a.addSpans(ctx, account, events, found); err != nil {
		return err
	}
	if err := a.findSpans(ctx, account, found); err != nil {
		return err
	}

	// A few log records may belong to large spans: not all of them are held at once.
	var derived []Event
	size := 0
	for _, j := range found {
		if j.spanRecord == "" {
			continue // its log records wait
		}
		more, err := a.join(ctx, account, j)
		if err := a.unjoined(account, j.spanRecord, err); err != nil {
			return err
		}

		derived = append(derived, more...)
		for i := range more {
			size += len(more[i].Body)
		}
		if size < joinBytesMax {
			continue
		}
		if err := a.applyJoined(ctx, account, derived); err != nil {
			return err
		}
		derived, size = nil, 0
	}

	return a.applyJoined(ctx, account, derived)
}

// applyJoined applies what join returned.
func (a *Archive) applyJoined(ctx context.Context, account string, derived []Event) error {
	if len(derived) == 0 {
		return nil
	}

	// A record that is full stays as it is.
	_, err := a.config.Store.Apply(ctx, account, derived)

	return a.unjoined(account, derived[0].RequestID, err)
}

// unjoined logs that something could not be joined, ever. The events of its batch are
// stored, and other batches must not fail with it. Any other error it returns, because
// sending the batch again may help.
func (a *Archive) unjoined(account, id string, err error) error {
	if !wire.IsCode(err, wire.CodeInternal) {
		return err
	}
	a.config.Logger.Error("log records stay apart from their span", "account", account, "id", id, "error", err)

	return nil
}

// addSpans adds the spans of a batch that may have log records.
func (a *Archive) addSpans(ctx context.Context, account string, events []Event, found joinings) error {
	waiting := Orphans{Requests: -1} // not asked for yet
	for i := range events {
		e := &events[i]
		if e.Span == nil {
			continue
		}
		key, ok := keyOf(e.Span.TraceID, e.Span.SpanID)
		if !ok {
			continue
		}

		// Without orphans no log records wait. But a call without its messages may have some
		// that were joined to what was sent of it before.
		lacks := e.Request != nil && (e.Request.Turns == 0 || e.Request.OutputShape == "")
		if !lacks && waiting.Requests < 0 {
			var err error
			if _, _, waiting, err = a.config.Store.Orphans(ctx, account, "", 0); err != nil {
				return err
			}
		}
		if !lacks && waiting.Requests == 0 && found[key] == nil {
			continue
		}

		j := found.of(key)
		j.spanRecord = e.RequestID
		for _, at := range []*time.Time{e.Span.Start, e.Span.End} {
			if at != nil {
				j.logRecords[wire.LogRecordID(key.trace, key.span, uint64(at.UnixNano()))] = struct{}{}
			}
		}
	}

	return nil
}

// findSpans looks for the spans that did not come with their log records.
func (a *Archive) findSpans(ctx context.Context, account string, found joinings) error {
	wanted := map[UUID]bool{}
	for key, j := range found {
		if j.spanRecord == "" {
			wanted[key.trace] = true
		}
	}

	for trace := range wanted {
		after := ""
		for range joinPages {
			states, more, err := a.config.Store.Trace(ctx, account, trace, after, traceStep)
			if err := a.unjoined(account, hex.EncodeToString(trace[:]), err); err != nil {
				return err
			}
			for i := range states {
				after = states[i].RequestID
				key, ok := keyOf(states[i].Span.Value.TraceID, states[i].Span.Value.SpanID)
				if j := found[key]; ok && j != nil {
					j.spanRecord = after
				}
			}
			if !more {
				break
			}
		}
	}

	return nil
}

// join returns the events that join a span with its log records: none if it has them.
func (a *Archive) join(ctx context.Context, account string, j *joining) (derived []Event, err error) {
	logs, derived, err := a.waitingLogs(ctx, account, j)
	if err != nil || len(logs) == 0 {
		return nil, err
	}
	state, body, err := a.config.Store.Record(ctx, account, j.spanRecord)
	if wire.IsCode(err, wire.CodeNotFound) || err == nil && state.Span == nil {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	// The record shows a request that was logged, which says more.
	if state.Request != nil && !state.Request.Value.Traced {
		return derived, nil
	}

	joined := otel.Join(body, logs)
	// What is not joined waits on: a full record would refuse the scores of its call.
	if state.Bytes()+len(joined) > RecordBytesMax/2 {
		return nil, nil
	}
	more := otel.Joined(joined) - otel.Joined(body)
	if more <= 0 {
		return derived, nil
	}

	// The stamp is right behind that of the span, so that one sent later still stands.
	from := state.History[slices.IndexFunc(state.History, func(h Entry) bool { return h.ID == state.Span.ID })]
	from.At = from.At.Add(time.Duration(more))
	span, err := a.derive(ctx, account, &from, wire.KindSpan, j.spanRecord, joined)
	if err != nil {
		return nil, err
	}

	return append(derived, span), nil
}

// waitingLogs returns the bodies of a span's log records, and the events that mark them.
func (a *Archive) waitingLogs(
	ctx context.Context, account string, j *joining,
) (logs []json.RawMessage, marks []Event, err error) {
	size := 0
	for _, id := range slices.Sorted(maps.Keys(j.logRecords)) {
		state, bodies, err := a.config.Store.Bodies(ctx, account, id)
		if wire.IsCode(err, wire.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}

		for _, h := range state.History {
			body := bodies[h.ID]
			object, err := wire.ParseObject(body)
			if size += len(body); err == nil && size <= joinBytesMax && object.Has("log") {
				logs = append(logs, body)
			}
		}
		if state.Joined {
			continue
		}

		body := json.RawMessage(`{"joined":"` + j.spanRecord + `"}`)
		mark, err := a.derive(ctx, account, &state.History[0], wire.KindLog, id, body)
		if err != nil {
			return nil, nil, err
		}
		marks = append(marks, mark)
	}

	return logs, marks, nil
}

// derive returns an event that the archive makes of another one, with its order time and
// its sidecar.
func (a *Archive) derive(
	ctx context.Context, account string, from *Entry, kind wire.Kind, recordID string, body json.RawMessage,
) (Event, error) {
	id, err := wire.SpanEventID(recordID, body)
	if err != nil {
		return Event{}, wire.Errorf(wire.CodeInternal, "%w", err)
	}
	e, err := Decode(wire.Event{
		ID:         id,
		RequestID:  recordID,
		Kind:       kind,
		AcceptedAt: from.At,
		Sidecar:    from.Sidecar,
		Body:       body,
	}, a.config.Now())
	// A log record with as many levels as a body may have gets one more in its span.
	if err != nil {
		return Event{}, wire.Errorf(wire.CodeInternal, "%w", err)
	}

	e.OrderTime = from.At
	if err := a.resolve(ctx, account, &e); err != nil {
		return Event{}, err
	}
	if e.Request != nil {
		e.Request.price(a.config.Prices, e.OrderTime)
	}

	return e, nil
}
