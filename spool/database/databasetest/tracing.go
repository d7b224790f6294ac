package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// SpanBody returns the body of a span of a trace.
func SpanBody(trace string, span int, name string) string {
	return fmt.Sprintf(`{"resource":{},"scope":{},"span":{"traceId":%q,"spanId":"%016x","name":%q,`+
		`"startTimeUnixNano":"1795318943782000000"}}`, trace, span, name)
}

// allSpans returns the ids of all records of an account that are only a span, in order.
func allSpans(t rapid.TB, s archive.Store, account string) (ids []string) {
	t.Helper()
	for after, more := "", true; more; {
		page, err := s.IDs(context.Background(), account, after, 2)
		must(t, err)
		for _, id := range page {
			after = id
			state, _, err := s.Bodies(context.Background(), account, id)
			must(t, err)
			if state.Bare() {
				ids = append(ids, id)
			}
		}
		more = len(page) == 2
	}
	slices.Sort(ids)

	return ids
}

// ofTrace returns the request ids of the spans of a trace.
func ofTrace(t rapid.TB, s archive.Store, account, trace string) (ids []string) {
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

// sameSpans compares the spans, and the records of each trace, with the states. No list shows the spans: see
// sameAsFold.
func sameSpans(t rapid.TB, states map[string]*archive.State, s archive.Store, account string) {
	t.Helper()
	var want []string
	traced := make(map[string][]string)

	for id, state := range states {
		if state.Bare() {
			want = append(want, id)
		}
		if state.TraceID() != "" {
			traced[state.TraceID()] = append(traced[state.TraceID()], id)
		}
	}
	slices.Sort(want)
	if got := allSpans(t, s, account); !slices.Equal(got, want) {
		t.Fatalf("the spans are %q, want %q", got, want)
	}
	for _, trace := range traces {
		slices.Sort(traced[trace])
		if got := ofTrace(t, s, account, trace); !slices.Equal(got, traced[trace]) {
			t.Fatalf("the trace %s has %q, want %q", trace, got, traced[trace])
		}
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
func left(t rapid.TB, s archive.Store, account string) []string {
	t.Helper()
	ids := allSpans(t, s, account)
	for _, row := range search(t, s, account, wire.Search{PerPage: 100}).Rows {
		ids = append(ids, row.RequestID)
	}
	slices.Sort(ids)

	return ids
}

// sameOrphans compares the list and the tally of the orphans with those of the states.
func sameOrphans(t rapid.TB, states map[string]*archive.State, s archive.Store, account string) {
	t.Helper()

	var want []wire.Orphan
	var tally archive.Orphans
	for _, id := range slices.Sorted(maps.Keys(states)) {
		if row, ok := states[id].OrphanRow(); ok {
			want = append(want, row)
		}
		tally.Add(states[id].Waiting()) // of log records as well, which have no row
	}

	got, gotTally := listOrphans(t, s, account, 2)
	if diff := cmp.Diff(want, got); diff != "" || gotTally != tally {
		t.Fatalf("orphans (-want +got):\n%s\ntally %+v, want %+v", diff, gotTally, tally)
	}
}

// listOrphans lists all orphans, in pages of up to limit.
func listOrphans(
	t rapid.TB, s archive.Store, account string, limit int,
) (all []wire.Orphan, tally archive.Orphans) {
	t.Helper()
	for after := ""; ; {
		states, next, err := s.States(context.Background(), account, archive.Orphaned, after, limit)
		if err != nil || len(states) > limit || next != "" && len(states) == 0 {
			t.Fatalf("States: %d records, next %q, %v", len(states), next, err)
		}
		for i := range states {
			row, ok := states[i].OrphanRow()
			if !ok {
				t.Fatalf("%s is no orphan", states[i].RequestID)
			}
			all = append(all, row)
		}
		after = next
		if after == "" {
			break
		}
	}

	has, err := s.Counts(context.Background(), account)
	must(t, err)

	return all, has.Orphans
}

func orphansFull(t *testing.T, open Open) {
	s, _ := open(t)

	// The body of a score is counted but not stored, so this stays quick.
	big := make([]byte, archive.RecordBytesMax/2)
	var fill []archive.Event
	for i := range archive.OrphanBytesMax / len(big) {
		e := Event(t, i, wire.KindScore, ID(1000+i), `{"score":1}`)
		e.Body = big
		fill = append(fill, e)
	}
	apply(t, s, account, fill...)

	// Only a new orphan needs space: not a request, nor what belongs to one, nor a
	// repetition.
	late := Event(t, 50, wire.KindScore, ID(2000), `{"score":1}`)
	request := Event(t, 51, wire.KindRequest, ID(3000), requestBody("x"))
	ofIt := Event(t, 52, wire.KindScore, ID(3000), `{"score":1}`)
	results := apply(t, s, account, late, request, ofIt, fill[0])
	want := []wire.ResultCode{
		wire.ResultLater, wire.ResultAccepted, wire.ResultAccepted, wire.ResultDuplicate,
	}
	for i, r := range results {
		if r.Code != want[i] || (r.Code == wire.ResultLater) != (r.Reason != "") {
			t.Errorf("event %d: %+v, want %s", i, r, want[i])
		}
	}

	others := Event(t, 60, wire.KindScore, ID(1000), `{"score":1}`)
	if r := apply(t, s, "another", others)[0]; r.Code != wire.ResultAccepted {
		t.Errorf("an account suffers from the orphans of another: %+v", r)
	}

	// A request that arrives makes space.
	joining := Event(t, 70, wire.KindRequest, ID(1000), `{"function_name":"f"}`)
	results = apply(t, s, account, joining, late)
	if results[0].Code == wire.ResultLater || results[1].Code != wire.ResultAccepted {
		t.Errorf("after a request joined: %+v", results)
	}
}
