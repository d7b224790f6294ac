package databasetest

import (
	"testing"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// rereading reads spans again that an older version read otherwise.
func rereading(t *testing.T, open Open) {
	s, reopen := open(t)
	events := []archive.Event{
		Event(t, 1, wire.KindSpan, ID(1000), CallBody(traces[0], 1, "of-our-own", "Hello")),
		Event(t, 2, wire.KindSpan, ID(1001), SpanBody(traces[0], 2, "no call")),
		Event(t, 3, wire.KindSpan, ID(1002), CallBody(traces[0], 3, "of-our-own", "as before")),
		Event(t, 4, wire.KindMetadata, ID(1000), `{"metadata":{"user_id":"later","plan":"b"}}`),
		Event(t, 5, wire.KindRequest, ID(1003), requestBody("logged")),
		Event(t, 6, wire.KindSpan, ID(1003), CallBody(traces[0], 4, "of-our-own", "logged, too")),
	}

	// Of the first an older version knew no more than metadata; the second it took for a
	// call. The model has no price, which an archive would add.
	older := append([]archive.Event{}, events...)
	older[0].Request, older[0].Metadata = nil, map[string]string{"user_id": "other", "old": "yes"}
	older[1].Request = events[2].Request
	apply(t, s, account, older...)

	s = reopen()
	a, id := overStore(s), wire.Identity{Account: account, Scope: wire.ScopeFull}
	for _, changed := range []int{2, 0} {
		seen, n := 0, 0
		for cursor, done := "", false; !done; {
			part, err := a.Reread(t.Context(), id, cursor)
			if err != nil {
				t.Fatal(err)
			}
			seen, n, cursor, done = seen+part.Seen, n+part.Changed, part.Cursor, part.Done
		}
		// One that leaves the list is seen again among the spans.
		if seen < 4 || seen > 5 || n != changed {
			t.Errorf("of %d spans %d changed, want %d of 4", seen, n, changed)
		}
	}

	states, _ := Fold(events)
	sameRows(t, Rows(states), search(t, s, account, wire.Search{}).Rows)
	sameViews(t, s, account, events)
}
