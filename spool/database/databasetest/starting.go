package databasetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

// begun returns a request that began so many seconds after Start.
func begun(after int64) string {
	return fmt.Sprintf(`{"function_name":"f","kwargs":{},"request_response":{},"request_start_time":%d,`+
		`"request_end_time":%d,"tags":["x"]}`, Start.Unix()+after, Start.Unix()+after+1)
}

// listTimes has requests of all clocks. They were accepted at Start plus 1 s and so on, and
// arrive when they are accepted.
func listTimes(t *testing.T, open Open) {
	s, _ := open(t)
	cases := []struct {
		body string
		want time.Time
	}{
		{begun(-30 * 86_400), Start.AddDate(0, 0, -30)},
		{begun(60), Start.Add(time.Minute)},
		{begun(3_600), Start.Add(3 * time.Second).Add(5 * time.Minute)}, // of its arrival
		{begun(60 - Start.Unix()), Start.Add(4 * time.Second)},          // 1970: its order time
		{`{"function_name":"f","kwargs":{},"request_response":{},"tags":["x"]}`, Start.Add(5 * time.Second)},
	}
	for i, c := range cases {
		apply(t, s, account, Event(t, i+1, wire.KindRequest, ID(1001+i), c.body))
	}

	rows := search(t, s, account, wire.Search{SortBy: "accepted_at", SortOrder: "asc"}).Rows
	for i, c := range cases {
		if !rows[i].ListTime.Equal(c.want) {
			t.Errorf("%s is listed at %s, want %s", c.body, rows[i].ListTime, c.want)
		}

		// What a record says of its acceptance stays.
		if rec := view(t, s, account, ID(1001+i)); !rec.AcceptedAt.Equal(Start.Add(seconds(i + 1))) {
			t.Errorf("%s was accepted at %s", c.body, rec.AcceptedAt)
		}
	}

	// An earlier request that takes over brings its own start.
	apply(t, s, account, Event(t, 0, wire.KindRequest, ID(1001), begun(-7)))
	page := search(t, s, account, wire.Search{FilterGroup: tagged("x")})
	last := page.Rows[len(page.Rows)-1]
	if page.Total != len(cases) || last.RequestID != ID(1001) || !last.ListTime.Equal(Start.Add(-7*time.Second)) {
		t.Errorf("of %d rows the last is that of %s, at %s", page.Total, last.RequestID, last.ListTime)
	}
}

func pagingWhileLate(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account, n := wire.NewID(), 0
		late := func() string {
			n++
			start := rapid.Int64Range(-50, 50).Draw(t, "start")
			apply(t, s, account, Event(t, n, wire.KindRequest, ID(1000+n), begun(start)))
			return ID(1000 + n)
		}

		there := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "there") {
			there[late()] = true
		}

		met := map[string]bool{}
		q, err := query.Compile(wire.Search{
			PerPage:     2,
			FilterGroup: rapid.SampledFrom([]*wire.Filter{nil, tagged("x")}).Draw(t, "filter"),
		})
		if err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			page, err := s.Search(context.Background(), account, q)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page.Rows {
				row := &page.Rows[i]
				if met[row.RequestID] {
					t.Fatalf("%s is met twice", row.RequestID)
				}
				met[row.RequestID] = true
				p := query.PositionOf(row)
				q.After = &p
			}

			more = page.More
			for range rapid.IntRange(0, 2).Draw(t, "late") {
				if n < 40 {
					late()
				}
			}
		}
		for id := range there {
			if !met[id] {
				t.Fatalf("%s was there and is skipped", id)
			}
		}
	})
}
