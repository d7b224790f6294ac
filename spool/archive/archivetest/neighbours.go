package archivetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// neighbours compares the neighbours of records with the list, in every order. Many
// records have the same time or value: an import by the day has nothing else.
func neighbours(t *testing.T, open Open) {
	s, _ := open(t)
	a := overStore(s)
	rapid.Check(t, func(t *rapid.T) {
		id := wire.Identity{Account: wire.NewID()}
		events := Events(t, 4, 8)
		for i := range rapid.IntRange(1, 12).Draw(t, "calls") {
			events = append(events, Event(t, 100+i, wire.KindRequest, ID(2000+i), drawTied(t)))
		}
		for _, batch := range Batches(t, events) {
			apply(t, s, id.Account, batch...)
		}

		w := drawSearch(t)
		w.PerPage, w.Page = wire.PageItemsMax, 1
		q, err := query.Compile(w)
		if err != nil {
			t.Fatalf("Compile: %v", err)
		}
		states, bodies := Fold(events)
		list := q.Select(Rows(states), func(row *wire.Row) *query.Subject { return Subject(states, bodies, row) }).Rows
		at := func(i int) string {
			if i < 0 || i >= len(list) {
				return ""
			}
			return list[i].RequestID
		}
		for range min(len(list), 4) {
			i := rapid.IntRange(0, len(list)-1).Draw(t, "place")
			before, behind, err := a.Neighbours(context.Background(), id, w, at(i), list[i].ListTime)
			if err != nil || before != at(i-1) || behind != at(i+1) {
				t.Fatalf("beside %d of %d are %q and %q, want %q and %q (%v)",
					i, len(list), before, behind, at(i-1), at(i+1), err)
			}
		}
	})
}

// drawTied draws a request that began at one of a few times, and took one or two seconds
// or nobody knows how long.
func drawTied(t *rapid.T) string {
	start := Start.Add(rapid.SampledFrom([]time.Duration{
		0, 1, time.Microsecond, time.Second, time.Second + 1, time.Minute, -time.Hour, -1000 * time.Hour,
	}).Draw(t, "start"))
	body := fmt.Sprintf(`{"function_name":"f","request_response":{},"tags":["x"],"request_start_time":%q`,
		start.Format(time.RFC3339Nano))
	if n := rapid.IntRange(0, 2).Draw(t, "latency"); n > 0 {
		body += fmt.Sprintf(`,"request_end_time":%q`, start.Add(seconds(n)).Format(time.RFC3339Nano))
	}

	return body + "}"
}
