package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// walkPages reads all pages by number and compares them with want.
func walkPages(t rapid.TB, s archive.Store, account string, w wire.Search, want []wire.Row) {
	t.Helper()
	var got []wire.Row
	for w.Page = 1; ; w.Page++ {
		page := search(t, s, account, w)
		got = append(got, page.Rows...)
		checkPage(t, page, w, 0, len(got), len(want))
		if !page.More {
			break
		}
	}

	sameRows(t, want, got)
}

// drawBytesMax draws the bound on a page's weight: one row, a few, or the default.
func drawBytesMax(t *rapid.T) int {
	return rapid.SampledFrom([]int{0, 1, 400, 900}).Draw(t, "bytes of a page")
}

// walkCursors reads all pages by cursor and compares them with want.
func walkCursors(t rapid.TB, s archive.Store, account string, w wire.Search, bytesMax int, want []wire.Row) {
	t.Helper()
	var got []wire.Row
	q := compiled(t, w)
	q.BytesMax = bytesMax
	for more := true; more; {
		page, err := s.Search(context.Background(), account, q)
		if err != nil {
			t.Fatalf("page by cursor: %v", err)
		}
		got, more = append(got, page.Rows...), page.More
		checkPage(t, page, w, bytesMax, len(got), len(want))
		if more {
			after := q.Order.PositionOf(&got[len(got)-1])
			q.After = &after
		}
	}

	sameRows(t, want, got)
}

// checkPage checks a page of w after which seen rows of total were seen.
func checkPage(t rapid.TB, page query.Page, w wire.Search, bytesMax, seen, total int) {
	t.Helper()
	if page.Total != total || page.TotalIsLowerBound {
		t.Fatalf("total %d (lower bound: %v), want exactly %d", page.Total, page.TotalIsLowerBound, total)
	}

	weight := 0
	for i := range page.Rows {
		if weight > 0 && bytesMax > 0 && weight >= bytesMax {
			t.Fatalf("a page of %d rows goes on after %d bytes of %d", len(page.Rows), weight, bytesMax)
		}
		weight += rowcode.Weight(&page.Rows[i])
	}

	// A page ends early only for its weight.
	full := len(page.Rows) == w.PerPage || bytesMax > 0 && weight >= bytesMax
	if page.More != (seen < total) || len(page.Rows) > w.PerPage || page.More && !full {
		t.Fatalf("a page of %d rows (at most %d), more: %v, after %d of %d",
			len(page.Rows), w.PerPage, page.More, seen, total)
	}
}

func totals(t *testing.T, open Open) {
	s, _ := open(t)
	const n = query.TotalMax + 2

	// Decoded once: there are ten thousand.
	events := make([]archive.Event, n)
	e := Event(t, 0, wire.KindRequest, ID(0), `{"tags":["x"]}`)
	for i := range events {
		e.ID, e.RequestID, e.OrderTime = ID(i), ID(100_000+i), Start.Add(seconds(i))
		events[i] = e
	}
	for batch := range slices.Chunk(events[:n-2], wire.BatchEventsMax) {
		apply(t, s, account, batch...)
	}

	page := search(t, s, account, wire.Search{FilterGroup: tagged("x")})
	if page.Total != query.TotalMax || page.TotalIsLowerBound || !page.More {
		t.Fatalf("of %d: %d, lower bound: %v", query.TotalMax, page.Total, page.TotalIsLowerBound)
	}
	apply(t, s, account, events[n-2:]...)
	page = search(t, s, account, wire.Search{FilterGroup: tagged("x")})
	if page.Total != query.TotalMax || !page.TotalIsLowerBound || !page.More {
		t.Fatalf("of %d: %d, lower bound: %v", n, page.Total, page.TotalIsLowerBound)
	}
	if page := search(t, s, account, wire.Search{}); page.Total != n || page.TotalIsLowerBound {
		t.Fatalf("without a filter, of %d: %d, lower bound: %v", n, page.Total, page.TotalIsLowerBound)
	}

	// Far behind the rows counted, the cursor still finds the last ones.
	q := compiled(t, wire.Search{FilterGroup: tagged("x")})
	q.After = &query.Position{At: events[1].OrderTime, RequestID: events[1].RequestID}
	last, err := s.Search(context.Background(), account, q)
	if err != nil || len(last.Rows) != 1 || last.Rows[0].ID != events[0].RequestID ||
		last.More || !last.TotalIsLowerBound {
		t.Fatalf("the last page is %+v (%v)", last, err)
	}
}

func spans(t *testing.T, open Open) {
	s, _ := open(t)
	const hours = 120

	// A record an hour, so that spans begin and end within days, which indexes count as a
	// whole.
	events := make([]archive.Event, hours)
	for i := range events {
		e := Event(t, 0, wire.KindRequest, ID(1000+i), fmt.Sprintf(`{"tags":["tag-%d"]}`, i%3))
		e.ID, e.OrderTime = ID(i), Start.Add(time.Duration(i)*time.Hour)
		events[i] = e
	}
	apply(t, s, account, events...)

	hour := func(operator string, n int) wire.Filter {
		return Condition("accepted_at", "", operator, Start.Add(time.Duration(n)*time.Hour))
	}
	for _, length := range []int{1, 24, 50, hours} {
		for from := 0; from+length <= hours; from += 23 {
			to := from + length // not included

			want := map[string]int{}
			for i := from; i < to; i++ {
				want[fmt.Sprintf("tag-%d", i%3)]++
			}
			others := wire.Filter{Logic: "OR", Filters: []wire.Filter{*tagged("tag-0"), *tagged("tag-2")}}
			for _, c := range []struct {
				filter wire.Filter
				want   int
			}{
				{*tagged("tag-1"), want["tag-1"]},
				{others, want["tag-0"] + want["tag-2"]},
				{Condition("tags", "", "is_not", "tag-1"), want["tag-0"] + want["tag-2"]},
			} {
				within := wire.Filter{Filters: []wire.Filter{hour("gte", from), hour("lt", to), c.filter}}
				page := search(t, s, account, wire.Search{PerPage: 5, FilterGroup: &within})
				if page.Total != c.want || len(page.Rows) != min(5, c.want) {
					t.Fatalf("hours %d to %d of %+v: %d rows of %d, want %d",
						from, to, c.filter, len(page.Rows), page.Total, c.want)
				}
			}
		}
	}
}

// snippets searches for words, phrases and parts of texts, and sees where they were found.
func snippets(t *testing.T, open Open) {
	s, _ := open(t)
	long := strings.Repeat("word ", 40)
	for n, talk := range [][2]string{
		{"When do I get my refund?", "A REFUND\n\ttakes 5 days."},
		{long + "my Refünd, please " + long, "Certainly."},
		{"İİİİ Ⱥ — refund, ﬁne", "No."},
		{"Hello", "我们会退款给您"},
	} {
		body, _ := json.Marshal(map[string]any{
			"kwargs": map[string]any{"messages": []map[string]string{{"role": "user", "content": talk[0]}}},
			"request_response": map[string]any{
				"choices": []any{map[string]any{"message": map[string]string{"content": talk[1]}}},
			},
			"price": n,
			"tags":  []string{"all"},
		})
		apply(t, s, account, Event(t, n, wire.KindRequest, ID(n), string(body)))
	}

	for _, c := range []struct {
		filter wire.Filter
		want   []string // of the newest record first; "" has none
	}{
		{Condition("text", "", "matches", "refund"), []string{
			"input: İİİİ Ⱥ — [refund], ﬁne",
			"input: …" + long[:55] + "my [Refünd], please " + long[:49] + "…",
			"input: When do I get my [refund]?",
		}},
		{Condition("output_text", "", "matches", "refund takes"), []string{"output: A [REFUND takes] 5 days."}},
		{Condition("text", "", "matches", "退款"), []string{"output: 我们会[退款]给您"}},
		{Condition("text", "", "contains", "ȺȺ"), nil},
		{Condition("text", "", "contains", "ⱥ — R"), []string{"input: İİİİ [Ⱥ — r]efund, ﬁne"}},
		{Condition("input_text", "", "ends_with", "O"), []string{"input: Hell[o]"}},
		// Of several conditions it is the first that has a place; what must not be there has none.
		{wire.Filter{Logic: "OR", Filters: []wire.Filter{
			Condition("text", "", "matches", "certain*"),
			Condition("tags", "", "is", "all"),
		}}, []string{"", "", "output: [Certainly].", ""}},
		{wire.Filter{Logic: "AND", Filters: []wire.Filter{
			Condition("text", "", "not_matches", "refund"),
			Condition("tags", "", "is", "all"),
		}}, []string{""}},
		{*tagged("all"), []string{"", "", "", ""}},
	} {
		for _, sort := range []string{"", "cost"} {
			page := search(t, s, account, wire.Search{FilterGroup: &c.filter, SortBy: sort})
			var got []string
			for _, row := range page.Rows {
				text := ""
				if f := row.Snippet; f != nil {
					text = f.In + ": " + f.Before + "[" + f.Match + "]" + f.After
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v by %q:\n got %q\nwant %q", &c.filter, sort, got, c.want)
			}
		}
	}
}

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
		q := compiled(t, wire.Search{
			PerPage:     2,
			FilterGroup: rapid.SampledFrom([]*wire.Filter{nil, tagged("x")}).Draw(t, "filter"),
		})
		for more := true; more; {
			page, err := s.Search(context.Background(), account, q)
			must(t, err)
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
