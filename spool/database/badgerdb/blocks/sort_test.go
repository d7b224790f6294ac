package blocks

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// A page that has some rows already wants of a block those that come before its last one.
func TestWithinFindsTheRowsThatMayEnterAPage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := make([]wire.Row, rapid.IntRange(2, 12).Draw(rt, "rows"))
		for i := range all {
			all[i] = drawSortable(rt, t, len(all)-i)
		}

		q, err := query.Compile(wire.Search{
			SortBy:    rapid.SampledFrom(append([]string{"score.a b"}, wire.SortFields...)).Draw(rt, "sort"),
			SortOrder: rapid.SampledFrom([]string{"asc", "desc"}).Draw(rt, "order"),
			PerPage:   1,
		})
		if err != nil {
			rt.Fatal(err)
		}
		f := query.NewFinder(&q)
		if rapid.Bool().Draw(rt, "in any order") {
			f.AnyOrder()
		}
		for range rapid.IntRange(0, 6).Draw(rt, "visited") {
			row := drawSortable(rt, t, rapid.IntRange(0, 12).Draw(rt, "at"))
			if _, err := f.Visit(func(rowcode.Columns) (*wire.Row, error) { return &row, nil }); err != nil {
				rt.Fatal(err)
			}
		}
		if rapid.Bool().Draw(rt, "behind a cursor") {
			row := drawSortable(rt, t, 3)
			after := q.Order.PositionOf(&row)
			q.After = &after
		}

		bounds := f.Bounds()
		b, _ := stored(t, all)
		got, err := b.Within(bounds)
		if err != nil {
			rt.Fatal(err)
		}
		for i := range all {
			// Of some times only the block's first and last are compared.
			bySpan := bounds.Order.By == "list_time" || bounds.Order.By == "accepted_at"
			if want := bounds.Has(&all[i]); got.Has(i) != want && (want || !bySpan) {
				rt.Errorf("row %d of %d is in: %v, want %v", i, len(all), got.Has(i), want)
			}
		}
	})
}

// drawSortable draws a row with all that lists are sorted by, some of it unknown.
func drawSortable(rt *rapid.T, t *testing.T, n int) wire.Row {
	row := fullRow(t)
	row.ListTime = time.Unix(int64(n), 0).UTC()
	row.AcceptedAt = row.ListTime.Add(time.Duration(rapid.IntRange(0, 2).Draw(rt, "later")) * time.Second)
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a b", "c"}), 0, 2, rapid.ID)
	row.Scores = []wire.Score{}
	for i, name := range names.Draw(rt, "scores") {
		row.Scores = append(row.Scores, wire.IntegerScore(name, i), wire.IntegerScore(name, 2))
	}
	row.Status = rapid.SampledFrom([]string{"SUCCESS", "ERROR", ""}).Draw(rt, "status")

	some := func(of **float64, unit float64) {
		v := float64(rapid.SampledFrom([]int{0, 1, 2, 300, 70_000, 5_000_000_000}).Draw(rt, "value")) / unit
		if *of = &v; rapid.IntRange(0, 3).Draw(rt, "known") == 0 {
			*of = nil
		}
	}
	some(&row.Price, rapid.SampledFrom([]float64{1, 1e9, 3}).Draw(rt, "unit"))
	some(&row.Latency, 1e9)
	for _, of := range []**int64{&row.InputTokens, &row.OutputTokens} {
		v := rapid.SampledFrom([]int64{-1 << 63, -5, 0, 7, 1<<63 - 1}).Draw(rt, "count")
		*of = &v
	}
	start := row.ListTime.Add(time.Duration(rapid.IntRange(-3, 3).Draw(rt, "start")) * 700 * time.Millisecond)
	if row.StartTime = &start; rapid.Bool().Draw(rt, "no start") {
		row.StartTime = nil
	}

	return row
}
