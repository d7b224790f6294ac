package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
)

// rollups draws calls, spans, scores and deletions, and compares what sessions, traces and users add
// up to with the records that are left.
func rollups(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		events := Events(t, 6, 24)
		for _, batch := range Batches(t, events) {
			apply(t, s, account, batch...)
			d := wire.Deletion{RequestID: batch[0].RequestID}
			switch n := rapid.IntRange(0, 12).Draw(t, "delete"); {
			case n == 0:
				d = wire.Deletion{Key: pick(t, keys), Value: pick(t, values), Before: Start.Add(seconds(5))}
			case n == 1:
				d = wire.Deletion{SessionID: pick(t, values[1:]), Before: Start.Add(seconds(5))}
			case n == 2:
				d = wire.Deletion{TraceID: pick(t, traces), Before: Start.Add(seconds(5))}
			}
			if rapid.IntRange(0, 3).Draw(t, "whether") == 0 {
				remove(t, s, account, d)
			}
		}

		states, bodies := make(map[string]*archive.State), make(map[string]json.RawMessage)
		for _, e := range events {
			state, kept, err := s.Bodies(t.Context(), account, e.RequestID)
			if err == nil {
				states[e.RequestID] = &state
				maps.Copy(bodies, kept)
			} else if !wire.IsCode(err, wire.CodeNotFound) {
				t.Fatal(err)
			}
		}
		for kind, all := range sameRollups(t, states, s, account) {
			samePages(t, s, account, rollup.Kind(kind), all)
		}
		w := wire.Search{FilterGroup: new(Filter(t, 2)), PerPage: 100}
		q := compiled(t, w)
		sameRows(t, matching(&q, states, bodies), search(t, s, account, w).Rows)

		for id := range states {
			remove(t, s, account, wire.Deletion{RequestID: id})
		}
		sameRollups(t, nil, s, account)
	})
}

// sameRollups compares the sums of all sessions, traces and users with those of states. It returns
// them as they are stored: their bounds may be wider.
func sameRollups(
	t rapid.TB, states map[string]*archive.State, s archive.Store, account string,
) (all [rollup.Kinds][]rollup.Entry) {
	t.Helper()
	var want [rollup.Kinds]map[string]rollup.Sums
	for kind := range want {
		want[kind] = make(map[string]rollup.Sums)
		for _, state := range states {
			part := state.Footprint().Rollups
			sums, found := want[kind][part.Names[kind]]
			if !found {
				sums = rollup.None()
			}
			sums.Add(part.Sums)
			want[kind][part.Names[kind]] = sums
		}
		delete(want[kind], "")
		maps.DeleteFunc(want[kind], func(_ string, s rollup.Sums) bool { return !s.Listed() }) // scores alone

		q := rollup.Query{Kind: rollup.Kind(kind), Sort: rollup.FactOf("turns"), Limit: 100}
		page := findRollups(t, s, account, q)
		got := make(map[string]rollup.Sums)
		for _, e := range page.Entries {
			narrow := want[kind][e.Name]
			if e.First > narrow.First || e.Last < narrow.Last {
				t.Fatalf("%q is from %d to %d, and its records from %d to %d",
					e.Name, e.First, e.Last, narrow.First, narrow.Last)
			}
			got[e.Name] = rollup.Sums{First: narrow.First, Last: narrow.Last, Of: e.Of}
		}
		if diff := cmp.Diff(want[kind], got); diff != "" || len(page.Entries) != len(want[kind]) {
			t.Fatalf("kind %d (-want +got):\n%s", kind, diff)
		}
		all[kind] = page.Entries
	}

	return all
}

// samePages draws searches and compares their pages with those of all roll-ups of a kind.
func samePages(t *rapid.T, s archive.Store, account string, kind rollup.Kind, all []rollup.Entry) {
	for range 3 {
		sort := rapid.IntRange(0, len(rollup.Facts)-1)
		q := rollup.Query{
			Kind:      kind,
			Like:      rapid.SampledFrom([]string{"", "a", "ada l", "1"}).Draw(t, "like"),
			Sort:      &rollup.Facts[sort.Draw(t, "sort")],
			Ascending: rapid.Bool().Draw(t, "ascending"),
			Limit:     rapid.IntRange(1, 3).Draw(t, "limit"),
		}
		if rapid.Bool().Draw(t, "some") {
			names := rapid.SampledFrom(slices.Concat(values, traces))
			q.Names = rapid.SliceOfN(names, 1, 3).Draw(t, "names")
			slices.Sort(q.Names)
			q.Names = slices.Compact(q.Names)
		}
		if rapid.Bool().Draw(t, "where") {
			fact := &rollup.Facts[sort.Draw(t, "fact")]
			from := rapid.Int64Range(-1, 3).Draw(t, "from")
			to := from + rapid.Int64Range(0, 1<<62).Draw(t, "width")
			q.Where = []rollup.Condition{{Fact: fact, From: from, To: to}}
		}

		for more := true; more; {
			finder := rollup.NewFinder(&q)
			for i := range all {
				if q.Names == nil || slices.Contains(q.Names, all[i].Name) {
					finder.Add([]byte(all[i].Name), &all[i].Sums)
				}
			}
			want, got := finder.Page(), findRollups(t, s, account, q)
			if len(want.Entries) == 0 {
				want.Total = got.Total
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("by %s after %+v (-want +got):\n%s", q.Sort.Name, q.After, diff)
			}
			more = got.More
			if more {
				after := q.PositionOf(&got.Entries[len(got.Entries)-1])
				q.After = &after
			}
		}
	}
}

func findRollups(t rapid.TB, s archive.Store, account string, q rollup.Query) rollup.Page {
	t.Helper()
	page, err := s.Rollups(context.Background(), account, q)
	if err != nil {
		t.Fatalf("Rollups: %v", err)
	}
	return page
}

// deletingSessions deletes a session and a trace, and has some of their records arrive afterwards.
func deletingSessions(t *testing.T, open Open) {
	s, _ := open(t)
	call := func(n int, session, trace string) archive.Event {
		body := fmt.Sprintf(`{"session_id":%q,"trace_id":%q,`, session, trace)
		return Event(t, n, wire.KindRequest, ID(1000+n), body+requestBody("x")[1:])
	}
	step := func(n int, trace string) archive.Event {
		return Event(t, n, wire.KindSpan, ID(1000+n), SpanBody(trace, n, "step"))
	}
	own, shared := traces[0], traces[1]
	apply(t, s, account,
		call(1, "s-1", own), step(2, own), call(3, "s-1", shared), step(4, shared), call(5, "s-2", shared),
		Event(t, 6, wire.KindRequest, ID(1006), `{"session_id":"s-1",`+requestBody("x")[1:]))
	apply(t, s, "other", call(1, "s-1", own), step(2, own))

	want := func(when string, ids ...string) {
		t.Helper()
		if got := left(t, s, account); !slices.Equal(got, ids) {
			t.Errorf("%s there are %q, want %q", when, got, ids)
		}
	}

	// Wherever a deletion is interrupted, another one completes it.
	for n, interrupted := 0, true; interrupted; n++ {
		account := fmt.Sprint("interrupted-", n)
		apply(t, s, account,
			call(1, "s-1", own), step(2, own), step(3, own), call(4, "s-1", shared), call(5, "s-2", shared))
		d := wire.Deletion{SessionID: "s-1", Before: Start.Add(seconds(10))}
		_, err := archive.Delete(t.Context(), &failing{Store: s, changes: n}, account, d)
		interrupted = err == errInterrupted
		if err != nil && !interrupted {
			t.Fatal(err)
		}
		remove(t, s, account, d)
		if left := slices.Concat(ofTrace(t, s, account, own), ofTrace(t, s, account, shared)); len(left) != 1 {
			t.Errorf("after a deletion that ended at its change %d, and another, there are %q", n, left)
		}
	}

	// If no more traces can be remembered, all that is there is deleted nevertheless.
	apply(t, s, "full", call(1, "s-1", own), step(2, own))
	d := wire.Deletion{SessionID: "s-1", Before: Start.Add(seconds(10))}
	_, err := archive.Delete(t.Context(), &failing{Store: s, changes: 99, full: true}, "full", d)
	if left := ofTrace(t, s, "full", own); len(left) > 0 || !wire.IsCode(err, wire.CodeTooLarge) {
		t.Errorf("%q are left, %v", left, err)
	}

	// With the trace that only this session is in; what is accepted later is of a living session.
	deleted := remove(t, s, account, d)
	want("after the session", ID(1004), ID(1005))
	if deleted.Records != 4 {
		t.Errorf("%+v was deleted", deleted)
	}
	apply(t, s, account, call(7, "s-1", own), step(8, own), step(9, shared), call(12, "s-1", own), step(13, own))
	want("after what came late", ID(1004), ID(1005), ID(1009), ID(1012), ID(1013))

	remove(t, s, account, wire.Deletion{TraceID: shared, Before: Start.Add(seconds(20))})
	apply(t, s, account, step(14, shared), step(21, shared))
	want("after the trace", ID(1012), ID(1013), ID(1021))
	if got := left(t, s, "other"); len(got) != 2 {
		t.Errorf("another account has %q", got)
	}

	for _, d := range []wire.Deletion{{SessionID: "s-1"}, {TraceID: own}, {TraceID: shared}, {SessionID: "s-2"}} {
		d.Before = Start.Add(seconds(30))
		remove(t, s, account, d)
	}
	want("at the end")
	sameRollups(t, nil, s, account)
}

// failing is a store that takes so many changes.
type failing struct {
	archive.Store
	changes int
	full    bool // no more traces can be remembered
}

var errInterrupted error = wire.Errorf(wire.CodeInternal, "interrupted")

func (s *failing) Change(
	ctx context.Context, account string, ids []string, alone bool, fn func(*archive.Group, archive.Loader) error,
) error {
	if s.changes--; s.changes < 0 {
		return errInterrupted
	}
	return s.Store.Change(ctx, account, ids, alone, fn)
}

func (s *failing) Forget(ctx context.Context, account string, values ...wire.Deletion) error {
	if s.changes--; s.changes < 0 {
		return errInterrupted
	}
	if s.full && strings.HasPrefix(values[0].Key, "\x00") {
		return wire.Errorf(wire.CodeTooLarge, "no more")
	}
	return s.Store.Forget(ctx, account, values...)
}

// RunLargeSession deletes a session of many traces, whose tombstones are as many. Of the others there
// is one for each record.
func RunLargeSession(t *testing.T, s archive.Store, traces int) {
	for first := 0; first < traces; first += 2000 {
		var events []archive.Event
		for n := first; n < min(first+2000, traces); n++ {
			body := fmt.Sprintf(`{"session_id":%q,"trace_id":"%032x",`, LargeSession, n+1) + requestBody("x")[1:]
			events = append(events, Event(t, n, wire.KindRequest, ID(1_000_000+n), body))
		}
		apply(t, s, account, events...)
	}

	d := wire.Deletion{SessionID: LargeSession, Before: Start.Add(seconds(traces))}
	if sum := remove(t, s, account, d); sum.Records != int64(traces) {
		t.Fatalf("%+v was deleted", sum)
	}
	sameRollups(t, nil, s, account)
	late := Event(t, 1, wire.KindSpan, ID(1), SpanBody(fmt.Sprintf("%032x", traces/2), 1, "late"))
	if apply(t, s, account, late); len(ofTrace(t, s, account, fmt.Sprintf("%032x", traces/2))) > 0 {
		t.Error("a span of a deleted trace is there")
	}
}

// LargeSession is the session of RunLargeSession.
const LargeSession = "session-of-many-traces"

// findingSessions finds sessions, traces and users by their calls, and reads a session.
func findingSessions(t *testing.T, open Open) {
	s, _ := open(t)
	service, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	var events []archive.Event
	for n := range 12 {
		body := fmt.Sprintf(`{"session_id":"s-%d","user_id":"Ann-%d","trace_id":"%032x",`, n/4, n/6, n+1)
		body += requestBody(fmt.Sprint("tag-", n%3))[1:]
		events = append(events, Event(t, n, wire.KindRequest, ID(1000+n), body))
	}
	apply(t, s, account, events...)

	tagged := &wire.Filter{Field: "tags", Operator: "is", Value: []byte(`"tag-0"`)}
	several := &wire.Filter{Logic: "AND", Filters: []wire.Filter{
		{Field: "turns", Operator: "gt", Value: []byte(`4`)},
		{Field: "id", Operator: "contains", Value: []byte(`"ann"`)},
	}}
	named := &wire.Filter{Field: "id", Operator: "is", Value: []byte(`"s-1"`)}
	for want, q := range map[string]wire.RollupSearch{
		"s-2 s-1 s-0": {Of: "sessions", SortBy: "last_seen"},
		"s-0 s-1 s-2": {Of: "sessions", FilterGroup: tagged, SortBy: "first_seen", SortOrder: "asc"},
		"s-1":         {Of: "sessions", FilterGroup: tagged, Having: named},
		"Ann-0 Ann-1": {Of: "users", Having: several, SortBy: "turns"},
		fmt.Sprintf("%032x %032x %032x %032x", 10, 7, 4, 1): {Of: "traces", FilterGroup: tagged},
	} {
		var got []string
		q.PerPage = 2
		for more := true; more; {
			page, err := service.Rollups(t.Context(), id, q)
			if err != nil || !page.Complete {
				t.Fatalf("%+v: %+v, %v", q, page, err)
			}
			for _, r := range page.Items {
				got = append(got, r.ID)
			}
			more = page.NextCursor != nil
			if more {
				q.Cursor = *page.NextCursor
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v finds %q, want %s", q, got, want)
		}
	}

	session, err := service.Session(t.Context(), id, "s-1")
	if err != nil || session.Turns != 4 || session.ID != "s-1" {
		t.Errorf("the session is %+v, %v", session, err)
	}
	if _, err := service.Session(t.Context(), id, "s"); !wire.IsCode(err, wire.CodeNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}

	// A cursor among the calls, as a search has that ran out of time, continues with older ones.
	rows := search(t, s, account, wire.Search{PerPage: 100}).Rows
	place := query.PositionOf(&rows[5])
	page, err := service.Rollups(t.Context(), id, wire.RollupSearch{Of: "sessions", PerPage: 1, Cursor: place.Cursor()})
	if err != nil || page.Complete || len(page.Items) != 1 || page.Items[0].ID != "s-1" || page.NextCursor == nil {
		t.Errorf("after the sixth call there is %+v, %v", page, err)
	}
}

// scoring draws in which order a span, a call and the scores of them, their traces and their session
// arrive. Then it deletes them: what was accepted before stays out.
func scoring(t *testing.T, open Open) {
	s, _ := open(t)
	service := overStore(s)
	traced, logged := traces[0], traces[1]
	write := func(n int, kind wire.Kind, recordID, body string) wire.Event {
		return wire.Event{
			ID:         ID(n),
			Kind:       kind,
			RequestID:  recordID,
			AcceptedAt: Start.Add(seconds(n)),
			Sidecar:    sidecars[0],
			Body:       json.RawMessage(body),
		}
	}
	score := func(n int, target, name string, score int) wire.Event {
		return write(n, wire.KindScore, ID(2000+n), fmt.Sprintf(`{%s,"name":%q,"score":%d}`, target, name, score))
	}
	call := func(n int) wire.Event {
		body := `{"session_id":"s-1","trace_id":"` + logged + `","span_id":"00000000000000ac",`
		return write(n, wire.KindRequest, ID(1000+n), body+requestBody("x")[1:])
	}

	const span = `,"span_id":"00000000000000ab"`
	wholeTrace, ofCall := `"trace_id":"`+traced+`"`, `"trace_id":"`+logged+`","span_id":"00000000000000ac"`
	spanID := wire.SpanRecordID([16]byte(uuidOf(traced)), [8]byte{7: 0xab}, uint64(Start.UnixNano()))
	events := []wire.Event{
		write(1, wire.KindSpan, spanID, SpanBody(traced, 0xab, "step")),
		call(2),
		score(3, `"session_id":"s-1"`, "csat", 10), score(4, `"session_id":"s-1"`, "csat", 60),
		score(5, `"session_id":"s-1"`, "solved", 100),
		score(6, wholeTrace, "cheap", 20), score(7, wholeTrace, "cheap", 30),
		score(8, wholeTrace+span, "safe", 40), score(9, wholeTrace+span, "safe", 50),
		score(10, ofCall, "kind", 70), score(11, ofCall, "kind", 80),
	}

	whole := events
	enclosing := wire.SpanRecordID([16]byte(uuidOf(logged)), [8]byte{7: 0xac}, uint64(Start.UnixNano()))

	rapid.Check(t, func(t *rapid.T) {
		// The call may have the ids of a span that is another record: both are what they name.
		events, named := slices.Clone(whole), []string{ID(1002)}
		if rapid.Bool().Draw(t, "enclosed") {
			events = append(events, write(12, wire.KindSpan, enclosing, SpanBody(logged, 0xac, "step")))
			named = append(named, enclosing)
		}

		id := wire.Identity{Account: wire.NewID(), Scope: wire.ScopeFull}
		record := func(events ...wire.Event) {
			results, err := service.Record(t.Context(), id, events)
			if err != nil || slices.ContainsFunc(results, func(r wire.Result) bool { return r.Reason != "" }) {
				t.Fatalf("%+v, %v", results, err)
			}
		}
		arrive := func() {
			again := rapid.SliceOfN(rapid.SampledFrom(events), 0, 4).Draw(t, "again")
			all := rapid.Permutation(slices.Concat(events, again)).Draw(t, "order")
			for len(all) > 0 {
				n := rapid.IntRange(1, len(all)).Draw(t, "batch")
				record(all[:n]...)
				all = all[n:]
			}
		}

		record(score(3, `"session_id":"s-1"`, "csat", 10))
		if _, err := service.Session(t.Context(), id, "s-1"); !wire.IsCode(err, wire.CodeNotFound) {
			t.Fatalf("a session that has nothing but a score: %v", err)
		}
		arrive()

		session, err := service.Session(t.Context(), id, "s-1")
		if err != nil || fmt.Sprint(session.OwnScores) != "[csat=60 solved=100]" ||
			session.Scores != 3 || *session.MeanScore != 80 ||
			!session.FirstSeen.Equal(Start.Add(seconds(2))) || !session.LastSeen.Equal(session.FirstSeen) {
			t.Fatalf("the session is %+v, %v", session, err)
		}
		trace, err := service.Trace(t.Context(), id, traced)
		if err != nil || fmt.Sprint(trace.OwnScores, trace.Spans[0].Scores) != "[cheap=30] [safe=50]" {
			t.Fatalf("the trace is %+v, %v", trace, err)
		}
		for _, of := range named {
			if r, err := service.Request(t.Context(), id, of); err != nil || fmt.Sprint(r.Scores) != "[kind=80]" {
				t.Fatalf("the record %s has %+v, %v", of, r.Scores, err)
			}
		}

		before := Start.Add(seconds(20))
		for _, d := range []wire.Deletion{{SessionID: "s-1", Before: before}, {TraceID: traced, Before: before}} {
			remove(t, s, id.Account, d)
		}
		if has, err := s.Counts(t.Context(), id.Account); has != (archive.Counts{}) || err != nil {
			t.Fatalf("after the deletion there is %+v, %v", has, err)
		}
		events = append(events, call(30), score(31, `"session_id":"s-1"`, "csat", 90))
		record(rapid.Permutation(events).Draw(t, "late")...)
		session, err = service.Session(t.Context(), id, "s-1")
		if err != nil || session.Turns != 1 || fmt.Sprint(session.OwnScores) != "[csat=90]" {
			t.Fatalf("what came later of the session is %+v, %v", session, err)
		}

		d := wire.Deletion{SessionID: "s-1", Before: Start.Add(seconds(40))}
		remove(t, s, id.Account, d)
		if has, err := s.Counts(t.Context(), id.Account); has != (archive.Counts{}) || err != nil {
			t.Fatalf("at the end there is %+v, %v", has, err)
		}
		sameRollups(t, nil, s, id.Account)
	})
}

// uuidOf reads the id of a trace.
func uuidOf(trace string) archive.UUID {
	id, _ := archive.ParseTrace(trace)
	return id
}

// findingSpans finds spans page by page, while other traces arrive.
func findingSpans(t *testing.T, open Open) {
	s, _ := open(t)
	service, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	step := func(n, trace int, name string) archive.Event {
		return Event(t, n, wire.KindSpan, ID(1000+n), SpanBody(fmt.Sprintf("%032x", trace), n, name))
	}
	var events []archive.Event
	for n := range 120 {
		events = append(events, step(1+n, 1+n/2, fmt.Sprint([]string{"plan ", "act "}[n%2], n/2)))
	}
	apply(t, s, account, events...)
	find := func(q wire.SpanSearch) (names []string) {
		t.Helper()
		for more := true; more; {
			page, err := service.Spans(t.Context(), id, q)
			// A busy machine may have no time to look through all at once.
			isPart := !page.Complete && page.NextCursor == nil
			if err != nil || isPart || len(page.Items) > max(q.PerPage, 10) {
				t.Fatalf("%+v: %+v, %v", q, page, err)
			}
			for _, span := range page.Items {
				names = append(names, span.Name)
			}
			more = page.NextCursor != nil
			if more {
				q.Cursor = *page.NextCursor
				apply(t, s, account, step(1000+len(names), 1000+len(names), "other"))
			}
		}
		return names
	}

	plans := find(wire.SpanSearch{Name: "plan", PerPage: 7})
	if len(plans) != 60 || plans[0] != "plan 59" || plans[59] != "plan 0" {
		t.Errorf("the plans are %q", plans)
	}
	inOne := &wire.Filter{Field: "id", Operator: "is", Value: fmt.Appendf(nil, `"%032x"`, 3)}
	if got := find(wire.SpanSearch{Having: inOne, PerPage: 1}); !slices.Equal(got, []string{"plan 2", "act 2"}) {
		t.Errorf("the third trace has %q", got)
	}
	if got := find(wire.SpanSearch{Name: "plan 5", Kind: "llm"}); got != nil {
		t.Errorf("of another kind are %q", got)
	}
	if _, err := service.Spans(t.Context(), id, wire.SpanSearch{Cursor: "1.x"}); !wire.IsCode(err, wire.CodeInvalid) {
		t.Errorf("another cursor: %v", err)
	}
}
