package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// SpanBody returns the body of a span of a trace.
func SpanBody(trace string, span int, name string) string {
	return fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x","name":%q,`+
		`"startTimeUnixNano":"1795318943782000000"}}`, trace, span, name)
}

// allSpans returns the request ids of all spans of an account, page by page.
func allSpans(t *testing.T, s archive.Store, account string) (ids []string) {
	t.Helper()
	var after *query.Position
	for {
		page, err := s.Spans(context.Background(), account, after, 2)
		if err != nil {
			t.Fatalf("Spans: %v", err)
		}
		for _, p := range page {
			ids = append(ids, p.RequestID)
		}
		if len(page) < 2 {
			return ids
		}
		after = &page[1]
	}
}

// ofTrace returns the request ids of the spans of a trace.
func ofTrace(t *testing.T, s archive.Store, account, trace string) (ids []string) {
	t.Helper()
	id, _ := archive.ParseTrace(trace)
	for after := ""; ; {
		states, next, err := s.States(context.Background(), account, archive.Part{Trace: id}, after, 2)
		if err != nil || next != "" && next != states[len(states)-1].RequestID {
			t.Fatalf("States: %d states, next is %q, %v", len(states), next, err)
		}
		for i := range states {
			ids = append(ids, states[i].RequestID)
		}
		after = next
		if after == "" {
			return ids
		}
	}
}

func tracing(t *testing.T, open Open) {
	s, reopen := open(t)
	one, other := traces[0], traces[1]
	var events []archive.Event
	for i := range 5 {
		events = append(events, Event(t, i, wire.KindSpan, ID(1000+i), SpanBody(one, i, "first")))
	}
	events = append(events,
		Event(t, 5, wire.KindSpan, ID(1005), SpanBody(other, 5, "other")),
		Event(t, 6, wire.KindSpan, ID(1006), SpanBody(one, 6, "scored")),
		Event(t, 7, wire.KindScore, ID(1006), `{"score":1}`),
		Event(t, 8, wire.KindSpan, ID(1007), SpanBody(one, 7, "a request too")),
		Event(t, 9, wire.KindRequest, ID(1007), requestBody("x")),
		Event(t, 10, wire.KindSpan, ID(1000), SpanBody(one, 0, "second")),
		// The id of a span that has no time, as that of the event that closes a trace, is of 1970.
		Event(t, 11, wire.KindSpan, wire.CloseRecordID([16]byte{1}), SpanBody(other, 0, "closed")))
	apply(t, s, "a", events...)
	for _, r := range apply(t, s, "a", events...) {
		if r.Code != wire.ResultDuplicate {
			t.Errorf("an event again: %+v", r)
		}
	}

	s = reopen()
	closing := wire.CloseRecordID([16]byte{1})
	want := []string{closing, ID(1000), ID(1006), ID(1005), ID(1004), ID(1003), ID(1002), ID(1001)}
	if got := allSpans(t, s, "a"); !slices.Equal(got, want) {
		t.Errorf("the spans are %q, want %q", got, want)
	}
	want = []string{ID(1000), ID(1001), ID(1002), ID(1003), ID(1004), ID(1006), ID(1007)}
	if got := ofTrace(t, s, "a", one); !slices.Equal(got, want) {
		t.Errorf("the trace has %q, want %q", got, want)
	}
	if got := ofTrace(t, s, "a", other); !slices.Equal(got, []string{closing, ID(1005)}) {
		t.Errorf("the other trace has %q", got)
	}
	if got := append(allSpans(t, s, "b"), ofTrace(t, s, "b", one)...); len(got) > 0 {
		t.Errorf("another account sees %q", got)
	}

	// The later of two contents stands, and the other one is in the history.
	state, body, err := s.Record(context.Background(), "a", ID(1000))
	if err != nil || state.Span.Value.Name != "second" || len(state.History) != 2 ||
		!sameJSON(body, events[10].Body) {
		t.Errorf("the record is %+v with %s, %v", state, body, err)
	}
	_, bodies, err := s.Bodies(context.Background(), "a", ID(1000))
	if err != nil || !sameJSON(bodies[events[0].ID], events[0].Body) {
		t.Errorf("the bodies are %q, %v", bodies, err)
	}

	// No list and no count knows spans. What is attached to one waits for nothing.
	if page := search(t, s, "a", wire.Search{}); len(page.Rows) != 1 || page.Total != 1 {
		t.Errorf("the list shows %+v", page)
	}
	rows, tally := listOrphans(t, s, "a", 10)
	if len(rows) != 0 || tally != (archive.Orphans{}) {
		t.Errorf("the orphans are %+v, %+v", rows, tally)
	}
}

// RunSpanRetention checks that spans go with the retention as requests do, by age and by
// bytes. open returns an empty store with this clock.
func RunSpanRetention(t *testing.T, open func(now time.Time) archive.Store) {
	const account = "a"
	const week = 7 * 24 * time.Hour
	now := Start.Add(20 * week)
	s := open(now)
	var events []archive.Event
	for i := range 20 {
		kind, body := wire.KindSpan, SpanBody(traces[0], i, fmt.Sprint(i))
		if i%4 == 3 {
			kind, body = wire.KindRequest, requestBody("x")
		}
		events = append(events, Event(t, i, kind, ID(1000+i), body))
	}
	apply(t, s, account, events...)

	bytes := int64(0)
	for _, e := range events[10:] {
		bytes += int64(len(e.Body))
	}
	if _, err := archive.Retain(t.Context(), s, archive.Retention{Bytes: bytes}, now); err != nil {
		t.Fatal(err)
	}
	if left := left(t, s, account); len(left) != 10 || left[0] != ID(1010) {
		t.Errorf("of the newest ten these are left: %q", left)
	}

	// The scores of a session are as old as the last of them, whatever its id says.
	scored := Decode(t, wire.Event{
		ID:         ID(50),
		Kind:       wire.KindScore,
		RequestID:  ID(2000),
		AcceptedAt: now,
		Body:       json.RawMessage(`{"session_id":"s-1","score":5}`),
	}, now)
	apply(t, s, account, scored)
	for weeks, want := range [][]string{{scored.RequestID}, {scored.RequestID}, nil, nil} {
		dropped, err := archive.Retain(t.Context(), s, archive.Retention{Age: week}, now.Add(time.Duration(weeks)*week))
		if err != nil || (dropped > 0) != (weeks == 0 || weeks == 2) {
			t.Errorf("%d were dropped after %d weeks, %v", dropped, weeks, err)
		}
		if left := left(t, s, account); !slices.Equal(left, want) {
			t.Errorf("after %d weeks there are %q", weeks, left)
		}
	}
}

// left returns the ids of the spans and requests of an account, in order.
func left(t *testing.T, s archive.Store, account string) []string {
	t.Helper()
	ids := allSpans(t, s, account)
	for _, row := range search(t, s, account, wire.Search{PerPage: 100}).Rows {
		ids = append(ids, row.RequestID)
	}
	slices.Sort(ids)

	return ids
}
