package query

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
)

func inZone(zone string, q wire.StatisticsQuery) wire.StatisticsQuery {
	q.Zone = zone
	return q
}

// statistics returns what Analyze and Statistics of a service make of rows.
func statistics(rows []wire.Row, q wire.StatisticsQuery) (wire.Analytics, wire.Statistics, error) {
	a, p := NewAnalytics(q), NewParts(wire.PartsQuery{StatisticsQuery: q})
	for i := range rows {
		if err := errors.Join(a.Add(&rows[i]), p.Add(&rows[i])); err != nil {
			return wire.Analytics{}, wire.Statistics{}, err
		}
	}

	return a.Answer(), p.Answer(), nil
}

func TestTheDaysOfASeriesAreThoseOfItsZone(t *testing.T) {
	rows := []wire.Row{
		{RequestID: "a", ListTime: time.Date(2026, 11, 2, 7, 59, 59, 0, time.UTC)},
		{RequestID: "b", ListTime: time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC)},
		{RequestID: "c", ListTime: time.Date(2026, 11, 1, 6, 59, 59, 0, time.UTC)},
	}
	for bucket, want := range map[string][]string{
		"day": {"2026-10-31", "2026-11-01"}, // the latter has 25 hours
		"hour": {"2026-10-31T23:00:00-07:00", "2026-11-01T00:00:00-07:00",
			"2026-11-01T23:00:00-08:00"},
	} {
		a, _, err := statistics(rows, inZone("America/Los_Angeles", wire.StatisticsQuery{Bucket: bucket}))
		if err != nil {
			t.Fatal(err)
		}
		var dates []string
		for _, s := range a.Stats {
			dates = append(dates, s.Date)
		}
		if diff := cmp.Diff(want, dates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", bucket, diff)
		}
	}
}

// Neither the order of rows nor what is summed up before changes what a page shows, in any zone.
func TestASeriesDependsOnItsRowsOnly(t *testing.T) {
	merged := 0
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int64{100, 5_000, 100_000, 3_000_000, 90_000_000}).Draw(t, "spread")
		rows := hourly(rapid.IntRange(1, 40).Draw(t, "rows"))
		for i := range rows {
			rows[i].ListTime = time.Unix(1_793_000_000+rapid.Int64Range(0, spread).Draw(t, "second"), 0)
		}
		slices.SortFunc(rows, func(a, b wire.Row) int { return b.ListTime.Compare(a.ListTime) })

		q := wire.StatisticsQuery{
			Bucket:    rapid.SampledFrom([]string{"", "day"}).Draw(t, "bucket"),
			PointsMax: rapid.SampledFrom([]int{0, 20, 50}).Draw(t, "points"),
		}
		q.Zone = rapid.SampledFrom([]string{
			"", "Europe/London", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Cairo",
		}).Draw(t, "zone")
		want, _, err := statistics(rows, q)
		if err != nil {
			t.Fatal(err)
		}

		again, _, err := statistics(rapid.Permutation(rows).Draw(t, "order"), q)
		if diff := cmp.Diff(want, again); err != nil || diff != "" {
			t.Fatalf("in another order: %v\n%s", err, diff)
		}

		// A summary is merged, or its rows are counted: as the stores do.
		sums := NewAnalytics(q)
		for part := range slices.Chunk(rows, 7) {
			ok, err := sums.Merge(Summarize(len(part), func(i int) *wire.Row { return &part[i] }), true)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				merged++
				continue
			}
			for i := range part {
				if err := sums.Add(&part[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if diff := cmp.Diff(want, sums.Answer()); diff != "" {
			t.Fatalf("with summaries:\n%s", diff)
		}
	})
	if merged == 0 {
		t.Error("no summary was merged")
	}
}

// A page draws the values that come first. However many others there are, each adds up to the whole, and the
// chart keeps its days.
func TestManyValuesLeaveTheFirstTheirSeries(t *testing.T) {
	const users, days, first = 3000, 30, 5
	p := NewParts(wire.PartsQuery{
		StatisticsQuery: wire.StatisticsQuery{PointsMax: 50},
		By:              "metadata.user_id",
		SeriesMax:       first,
		Rank:            func(t *wire.Totals) float64 { return t.Cost },
	})
	add := func(day, user int, price float64) {
		row := wire.Row{Status: "SUCCESS", Price: &price}
		row.ListTime = time.Unix(1_793_000_000, 0).AddDate(0, 0, -day)
		if user > 0 {
			row.Metadata = []wire.MetadataRow{{Key: "user_id", Value: strconv.Itoa(user)}}
		}
		if err := p.Add(&row); err != nil {
			t.Fatal(err)
		}
	}
	for day := range days {
		add(day, 0, 1) // no value
		for user := 1; user <= users; user++ {
			price := 0.001
			if user <= first {
				price = float64(1 + user)
			}
			add(day, user, price)
		}
	}

	w := p.Answer()
	if w.ChartInterval.Interval != "day" || len(w.Items) != wire.AnalyticsListMax {
		t.Fatalf("%d values by %s", len(w.Items), w.ChartInterval.Interval)
	}
	for i, item := range w.Items {
		series := 0
		if i < first {
			series = days
			if want := strconv.Itoa(first - i); item.Value != want {
				t.Errorf("value %d is %s, not %s", i, item.Value, want)
			}
		}
		if len(item.Series) != series || item.Requests != days {
			t.Errorf("value %d has %d requests in %d days", i, item.Requests, len(item.Series))
		}
	}
	left := int64(days * (users - wire.AnalyticsListMax))
	if all := days * (users + 1); w.All.Requests != int64(all) || len(w.All.Series) != days || w.LeftOut != left {
		t.Errorf("%d of %d requests in %d days, %d left out", w.All.Requests, all, len(w.All.Series), w.LeftOut)
	}
}
