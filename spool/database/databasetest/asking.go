package databasetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
)

// overStore returns an archive on a store, without a registry.
func overStore(s archive.Store) *records.Service {
	return records.New(records.Config{
		Store:   s,
		Metrics: metrics.New("server", "test"),
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

// everyOrder searches in every order, also for words and fields in bodies. Many records have the same
// time or value: an import by the day has nothing else.
func everyOrder(t *testing.T, open Open) {
	s, _ := open(t)
	rapid.Check(t, func(t *rapid.T) {
		account := wire.NewID()
		events := Events(t, 4, 16)
		for i := range rapid.IntRange(1, 12).Draw(t, "calls") {
			events = append(events, Event(t, 100+i, wire.KindRequest, ID(2000+i), drawTied(t)))
		}
		for _, batch := range Batches(t, events) {
			apply(t, s, account, batch...)
		}
		settle(t, s, account)

		states, bodies := Fold(events)
		rows := Rows(states)
		for range 4 {
			w := drawSearch(t)
			q := compiled(t, w)
			q.BytesMax = drawBytesMax(t)
			q.CountBudget = rapid.SampledFrom([]time.Duration{0, time.Nanosecond, time.Hour}).Draw(t, "count")
			if len(rows) > 0 && rapid.IntRange(0, 3).Draw(t, "behind a cursor") == 0 {
				q.After = new(q.Order.PositionOf(&rows[rapid.IntRange(0, len(rows)-1).Draw(t, "after")]))
			}

			want := Select(q, rows, func(row *wire.Row) *query.Subject { return Subject(states, bodies, row) })
			got, err := s.Search(context.Background(), account, q)
			if err != nil {
				t.Fatalf("Search: %v", err)
			}
			sameRows(t, want.Rows, got.Rows)

			// A store that has only a moment counts the row after the page, and perhaps another one.
			total, isLowerBound := want.Total, want.TotalIsLowerBound
			if q.CountBudget == time.Nanosecond && q.Streams() && want.More && q.After == nil {
				least := q.Offset + len(got.Rows) + 1
				most := min(least+1, want.Total)
				isLowerBound = got.TotalIsLowerBound || want.Total > most
				if isLowerBound {
					total = min(max(got.Total, least), most)
				}
			}
			if want.More != got.More || total != got.Total ||
				isLowerBound != got.TotalIsLowerBound || got.Stopped != nil {
				t.Fatalf("want total %d (lower bound %v), more %v; got %d (%v), %v",
					total, isLowerBound, want.More, got.Total, got.TotalIsLowerBound, got.More)
			}

			// A first page's own cursor leads to it, and soon.
			w.Cursor, w.Quick = q.Answer(got).Start, true
			if w.Page == 1 && q.After == nil && w.Cursor != "" {
				for i, again := range search(t, s, account, w).Rows[:len(got.Rows)] {
					if again.RequestID != got.Rows[i].RequestID {
						t.Fatalf("row %d of the page at %s is another", i, w.Cursor)
					}
				}
			}
		}

		// Every page of an order, by number and by cursor.
		for range 3 {
			f := Filter(t, 3)
			w := wire.Search{
				SortBy:      rapid.SampledFrom(append([]string{""}, sortFields...)).Draw(t, "walked"),
				PerPage:     rapid.IntRange(1, 4).Draw(t, "rows of a page"),
				FilterGroup: rapid.SampledFrom([]*wire.Filter{nil, &f}).Draw(t, "only"),
			}
			if w.SortBy != "" {
				w.SortOrder = rapid.SampledFrom([]string{"asc", "desc"}).Draw(t, "direction")
			}
			q := compiled(t, w)
			q.Limit = max(len(rows), 1)
			want := Select(q, rows, func(row *wire.Row) *query.Subject { return Subject(states, bodies, row) })
			walkPages(t, s, account, w, want.Rows)
			walkCursors(t, s, account, w, drawBytesMax(t), want.Rows)
		}
	})
}

// Select returns the page that a search makes of rows, newest first. It defines the
// meaning of a whole search. subject returns the Subject of a row.
func Select(q query.Query, rows []wire.Row, subject func(row *wire.Row) *query.Subject) query.Page {
	var found []wire.Row
	for i := range rows {
		if s := subject(&rows[i]); q.Match(s) {
			row := rows[i]
			if !q.Bare {
				row.Snippet, _ = q.Snippet(s)
			}
			found = append(found, row)
		}
	}
	slices.SortFunc(found, func(a, b wire.Row) int {
		return q.Order.Compare(q.Order.PositionOf(&a), q.Order.PositionOf(&b))
	})

	// The total is that of the whole list, wherever the page begins.
	page := query.Page{Total: len(found)}
	if q.After != nil {
		found = slices.DeleteFunc(found, func(r wire.Row) bool {
			return q.Order.Compare(q.Order.PositionOf(&r), *q.After) <= 0
		})
	}

	behind := found[min(q.Offset, len(found)):]
	fitting := q.NewPage()
	for ; len(behind) > 0 && !fitting.Full(); behind = behind[1:] {
		fitting.Add(behind[0])
	}
	page.Rows, page.More = fitting.Rows, len(behind) > 0

	// Stores stop counting at these points; see query.Finder.
	switch {
	case q.Streams() && q.CountBudget > 0 && q.After == nil:
	case q.Streams():
		page.Total = min(len(found), q.Offset+len(page.Rows)+1)
		page.TotalIsLowerBound = q.After != nil || page.More
	case q.Filtered() && page.Total > query.TotalMax:
		page.Total, page.TotalIsLowerBound = query.TotalMax, true
	}

	return page
}

var sortFields = append([]string{"score.default", "score.compiles"}, wire.SortFields...)

// drawSearch draws a search with any order, words or a filter, and a small page.
func drawSearch(t *rapid.T) (w wire.Search) {
	w = wire.Search{
		SortBy:  rapid.SampledFrom(append([]string{""}, sortFields...)).Draw(t, "sort"),
		PerPage: rapid.IntRange(1, 4).Draw(t, "per page"),
		Page:    rapid.IntRange(1, 2).Draw(t, "page"),
	}
	if w.SortBy != "" {
		w.SortOrder = rapid.SampledFrom([]string{"", "asc", "desc"}).Draw(t, "order")
	}
	words := rapid.SampledFrom([]string{"", "", "hello", "HELLO world", "nowhere"}).Draw(t, "words")
	defer func() { w.FilterGroup = withWords(words, w.FilterGroup) }()

	switch rapid.IntRange(0, 3).Draw(t, "filter") {
	case 1:
		f := Filter(t, 2)
		w.FilterGroup = &f
	case 2:
		f := wire.Filter{
			Field: rapid.SampledFrom([]string{"input_text", "text"}).Draw(t, "field"),
			Operator: rapid.SampledFrom(
				[]string{"contains", "not_contains", "matches", "not_matches"}).Draw(t, "operator"),
			Value: []byte(`"hello"`),
		}
		w.FilterGroup = &wire.Filter{Logic: "OR", Filters: []wire.Filter{f, Filter(t, 1)}}
	}

	return w
}

// statistics compares the sums of random filters with those of the oracle.
func statistics(t *testing.T, open Open) {
	s, _ := open(t)
	a := overStore(s)
	rapid.Check(t, func(t *rapid.T) {
		id := wire.Identity{Account: wire.NewID()}
		events := Events(t, 8, 24)
		for _, batch := range Batches(t, events) {
			apply(t, s, id.Account, batch...)
		}
		settle(t, s, id.Account)
		states, bodies := Fold(events)

		// For a span and for everything, stores use summaries.
		f := Filter(t, 2)
		switch rapid.SampledFrom([]string{"any", "a span", "everything"}).Draw(t, "which") {
		case "a span":
			f = wire.Filter{Filters: []wire.Filter{moment(t, "gte"), moment(t, "lt")}}
		case "everything":
			f = wire.Filter{}
		}
		question := wire.PartsQuery{
			By: rapid.SampledFrom(append([]string{"", "metadata.user"}, wire.PartsBy...)).Draw(t, "by"),
		}
		question.FilterGroup = &f
		question.Bucket = rapid.SampledFrom(append([]string{""}, wire.Buckets...)).Draw(t, "bucket")
		q := compiled(t, wire.Search{FilterGroup: &f})

		// The order of the rows must not matter.
		rows := rapid.Permutation(matching(&q, states, bodies)).Draw(t, "order")
		wantAll, _, err := Statistics(rows, question.StatisticsQuery)
		must(t, err)
		wantParts := query.NewParts(question)
		for i := range rows {
			must(t, wantParts.Add(&rows[i]))
		}

		all, err := a.Analyze(context.Background(), id, question.StatisticsQuery)
		if diff := cmp.Diff(wantAll, all); err != nil || diff != "" {
			t.Fatalf("analytics (%v) (-want +got):\n%s", err, diff)
		}
		parts, err := a.Statistics(context.Background(), id, question)
		if diff := cmp.Diff(wantParts.Answer(), parts); err != nil || diff != "" {
			t.Fatalf("statistics (%v) (-want +got):\n%s", err, diff)
		}
	})
}

// matching returns the rows that a query finds, newest first.
func matching(
	q *query.Query, states map[string]*archive.State, bodies map[string]json.RawMessage,
) (rows []wire.Row) {
	for _, row := range Rows(states) {
		if q.Match(Subject(states, bodies, &row)) {
			rows = append(rows, row)
		}
	}
	return rows
}

// moment draws a condition on the time at which requests were accepted.
func moment(t *rapid.T, operator string) wire.Filter {
	at := Start.Add(seconds(rapid.IntRange(-1, 8).Draw(t, "seconds")))
	return Condition("accepted_at", "", operator, at)
}

// asked stores n requests of three users, each with a tag of its own, and returns the
// archive.
func asked(t *testing.T, s archive.Store, n int) (*records.Service, wire.Identity) {
	t.Helper()

	const body = `{"function_name":"openai.chat.completions.create",` +
		`"kwargs":{"messages":[{"role":"user","content":"Hello number %d"}]},` +
		`"metadata":{"user":"user-%d"},"tags":["Tag-%d"]}`
	for i := range n {
		apply(t, s, account, Event(t, i, wire.KindRequest, ID(1000+i), fmt.Sprintf(body, i, i%3, i)))
	}

	return overStore(s), wire.Identity{Account: account}
}

func suggesting(t *testing.T, open Open) {
	s, _ := open(t)
	a, id := asked(t, s, 5)

	for _, c := range []struct {
		query    wire.SuggestQuery
		want     []string
		complete bool
	}{
		{wire.SuggestQuery{Field: "tags"}, []string{"Tag-4", "Tag-3", "Tag-2", "Tag-1", "Tag-0"}, true},
		{wire.SuggestQuery{Field: "tags", Prefix: "tAG-3"}, []string{"Tag-3"}, true},
		{wire.SuggestQuery{Field: "tags", Limit: 2}, []string{"Tag-4", "Tag-3"}, false},
		{
			wire.SuggestQuery{Field: "metadata_values", Key: "user"},
			[]string{"user-1", "user-0", "user-2"}, true,
		},
		{wire.SuggestQuery{Field: "metadata_keys"}, []string{"user"}, true},
		{wire.SuggestQuery{Field: "tags", FilterGroup: tagged("Tag-2")}, []string{"Tag-2"}, true},
		{wire.SuggestQuery{Field: "input_text", Prefix: "hello number 3"}, []string{"Hello number 3"}, true},
	} {
		got, err := a.Suggest(context.Background(), id, c.query)
		if diff := cmp.Diff(c.want, got.Values); err != nil || diff != "" || got.Complete != c.complete {
			t.Errorf("%+v: complete %v, %v (-want +got):\n%s", c.query, got.Complete, err, diff)
		}
	}
}

// exporting breaks off after every two records and goes on from the cursor.
func exporting(t *testing.T, open Open) {
	s, _ := open(t)
	a, id := asked(t, s, 7)

	var ids []string
	cursor := ""
	stop := fmt.Errorf("enough")
	for rounds := 0; rounds < 10; rounds++ {
		n := 0
		from := wire.ExportQuery{Cursor: cursor}
		err := a.Export(context.Background(), id, from, func(e wire.Exported) error {
			if n++; n > 2 {
				return stop
			}
			ids, cursor = append(ids, e.Record.RequestID), e.Cursor
			return nil
		})
		if err == nil {
			break
		}
	}

	var want []string
	for i := 6; i >= 0; i-- {
		want = append(want, ID(1000+i))
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("exported (-want +got):\n%s", diff)
	}
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

// Statistics returns what Analyze and Statistics of a service make of rows. It defines the meaning of both:
// stores answer from indexes, column blocks and summaries instead, and must give the same answers.
func Statistics(rows []wire.Row, q wire.StatisticsQuery) (wire.Analytics, wire.Statistics, error) {
	a, p := query.NewAnalytics(q), query.NewParts(wire.PartsQuery{StatisticsQuery: q})
	for i := range rows {
		err := a.Add(&rows[i])
		if err == nil {
			err = p.Add(&rows[i])
		}
		if err != nil {
			return wire.Analytics{}, wire.Statistics{}, err
		}
	}

	return a.Answer(), p.Answer(), nil
}
