package records_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"testing"

	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb"
	"promptspool/spool/database/databasetest"
)

// What a sidecar took before it could know of the close is folded nevertheless.
func TestATraceThatIsClosedTakesWhatSidecarsBring(t *testing.T) {
	s := newServer(t)
	trace := [16]byte{0x5b, 0x8e, 15: 1}
	isClosed := func(want bool) {
		t.Helper()
		if got, err := s.IsClosed(t.Context(), s.id, trace); got != want || err != nil {
			t.Errorf("IsClosed is %v, %v", got, err)
		}
	}
	isClosed(false)

	closing := span(t, wire.CloseRecordID(trace), otlp.Close(trace))
	for i, want := range []wire.ResultCode{wire.ResultAccepted, wire.ResultDuplicate} {
		if got := s.record(t, closing); got[0].Code != want {
			t.Errorf("close %d: %+v", i, got)
		}
	}
	isClosed(true)
	answer, err := s.Trace(t.Context(), s.id, "5b8e0000000000000000000000000001")
	if err != nil || !answer.Closed || len(answer.Spans) > 0 {
		t.Errorf("the trace is %+v, %v", answer, err)
	}

	_, err = otlp.Traces(t.Context(), []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"late",
		"traceId":"5b8e0000000000000000000000000001","spanId":"0000000000000001"}]}]}]}`), otlp.JSON,
		func(late otlp.Span) error {
			e := span(t, wire.SpanRecordID(late.TraceID, late.SpanID, late.Start), late.Body)
			if got := s.record(t, e); got[0].Code != wire.ResultAccepted {
				t.Errorf("the late span: %+v", got)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	answer, err = s.Trace(t.Context(), s.id, "5b8e0000000000000000000000000001")
	if err != nil || !answer.Closed || len(answer.Spans) != 1 || answer.Spans[0].Name != "late" {
		t.Errorf("the trace is %+v, %v", answer, err)
	}
}

// span returns the event of a span, as package api makes it.
func span(t *testing.T, recordID string, body []byte) wire.Event {
	t.Helper()
	e := write(1, wire.KindSpan, string(body))
	e.RequestID = recordID
	var err error
	if e.ID, err = wire.SpanEventID(recordID, body); err != nil {
		t.Fatal(err)
	}

	return e
}

// A span that was acknowledged has arrived, whatever is attached to it.
func TestASpanIsShownWithWhatIsAttachedToIt(t *testing.T) {
	s := newServer(t)
	span := write(1, wire.KindSpan, `{"resource":{},"scope":{},"span":{`+
		`"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"load"}}`)
	score := write(2, wire.KindScore, `{"score":7}`)
	metadata := write(3, wire.KindMetadata, `{"metadata":{"team":"blue"}}`)
	s.record(t, span, score, metadata)

	rec, err := s.Request(t.Context(), s.id, span.RequestID)
	if err != nil {
		t.Fatal(err)
	}
	if string(rec.Span) != string(span.Body) || rec.Request != nil || len(rec.Scores) != 1 || len(rec.Metadata) != 1 {
		t.Errorf("the record is %+v", rec)
	}
}

// traceReads counts how often a trace is read.
type traceReads struct {
	*badgerdb.DB
	begun int
}

func (s *traceReads) States(ctx context.Context, account string, of archive.Part, after string, limit int,
) ([]archive.State, string, error) {
	if after == "" {
		s.begun++
	}
	return s.DB.States(ctx, account, of, after, limit)
}

func TestALongTraceIsReadAgainOnlyIfItHasChanged(t *testing.T) {
	store := &traceReads{DB: openStore(t)}
	s := serverOver(store)
	trace := [16]byte{0x5b, 0x8e, 15: 1}
	id := hex.EncodeToString(trace[:])
	spans := func(from, to int) (events []archive.Event) {
		for n := from; n < to; n++ {
			events = append(events,
				databasetest.Event(t, n, wire.KindSpan, databasetest.ID(n), databasetest.SpanBody(id, n, "step")))
		}
		return events
	}
	read := func(spans, reads int, closed bool) {
		t.Helper()
		for range 2 {
			got, err := s.Trace(t.Context(), s.id, id)
			if err != nil || len(got.Spans) != spans || got.Closed != closed {
				t.Errorf("%d spans, closed: %t, %v; want %d, %t", len(got.Spans), got.Closed, err, spans, closed)
			}
		}
		if store.begun != reads {
			t.Errorf("the trace of %d spans was read %d times, want %d", spans, store.begun, reads)
		}
	}

	mustApply(t, store.DB, s.id.Account, spans(1, 1201)...)
	read(1200, 1, false)
	mustApply(t, store.DB, s.id.Account, spans(1201, 1202)...)
	read(1201, 2, false)
	score := write(1, wire.KindScore, `{"score":7}`)
	score.RequestID = (&wire.ScoreTarget{TraceID: id}).RecordID()
	s.record(t, score)
	read(1201, 2, false)
	if got, err := s.Trace(t.Context(), s.id, id); err != nil || len(got.OwnScores) != 1 {
		t.Errorf("the trace's own scores are %+v, %v", got.OwnScores, err)
	}
	if _, err := s.Trace(t.Context(), wire.Identity{Account: "another"}, id); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("another account: %v", err)
	}
	s.record(t, span(t, wire.CloseRecordID(trace), otlp.Close(trace)))
	store.begun = 2
	read(1201, 3, true)
}

// Its parent may still be on the way.
func TestADeletedCallLeavesTheLogRecordsOfItsParent(t *testing.T) {
	s := newServer(t)
	const ids = `"traceId":"5b8e0000000000000000000000000001",`
	at := fmt.Sprintf(`"%d"`, databasetest.Start.UnixNano())
	send := func(read func(body []byte, send func(kind wire.Kind, id string, body []byte)) error, body string) {
		t.Helper()
		err := read([]byte(body), func(kind wire.Kind, id string, body []byte) {
			e := span(t, id, body)
			e.Kind = kind
			if got := s.record(t, e); got[0].Code != wire.ResultAccepted {
				t.Errorf("%s: %+v", kind, got)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	last := "" // record of a span
	spans := func(body []byte, send func(wire.Kind, string, []byte)) error {
		_, err := otlp.Traces(t.Context(), body, otlp.JSON, func(s otlp.Span) error {
			last = wire.SpanRecordID(s.TraceID, s.SpanID, s.Start)
			send(wire.KindSpan, last, s.Body)
			return nil
		})
		return err
	}
	logs := func(body []byte, send func(wire.Kind, string, []byte)) error {
		_, err := otlp.Logs(t.Context(), body, otlp.JSON, func(l otlp.Log) error {
			send(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
			return nil
		}, nil)
		return err
	}
	const model = `,"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
		{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o"}}]}]}]}]}`

	send(logs, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{`+ids+`"spanId":"00000000000000aa","timeUnixNano":`+at+`,
		"eventName":"gen_ai.user.message","body":{"kvlistValue":{"values":[
		{"key":"content","value":{"stringValue":"Hello"}}]}}}]}]}]}`)
	const begin = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"chat",`
	send(spans, begin+ids+`"spanId":"00000000000000bb","parentSpanId":"00000000000000aa","startTimeUnixNano":`+at+model)
	if _, err := s.Delete(t.Context(), s.id, wire.Deletion{RequestID: last}); err != nil {
		t.Fatal(err)
	}

	send(spans, begin+ids+`"spanId":"00000000000000aa","startTimeUnixNano":`+at+model)
	if rec, err := s.Request(t.Context(), s.id, last); err != nil || rec.InputExcerpt != "Hello" {
		t.Errorf("the parent shows %q, %v", rec.InputExcerpt, err)
	}
}
