package query

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// hourly returns rows an hour apart, newest first. Each has its own session and one of two
// users.
func hourly(n int) []wire.Row {
	rows := make([]wire.Row, n)
	for i := range rows {
		price, latency, input, name := float64(i%7)/1000, float64(i%90)/10, int64(i%5), "greet"
		rows[i] = wire.Row{
			ListTime:    time.Unix(1_800_000_000, 0).Add(-time.Duration(i) * time.Hour),
			Engine:      fmt.Sprint("model-", i%3),
			Status:      "SUCCESS",
			Price:       &price,
			Latency:     &latency,
			InputTokens: &input,
			PromptName:  &name,
			Tags:        []string{fmt.Sprint("tag-", i%4)},
			ToolNames:   []string{"search"},
			Scores:      []wire.Score{wire.IntegerScore("default", i%101)},
			Metadata: []wire.MetadataRow{
				{Key: "session", Value: fmt.Sprint(i)},
				{Key: "user", Value: fmt.Sprint("user-", i%2)},
			},
		}
		if i%10 == 0 {
			rows[i].Status = "ERROR"
		}
	}

	return rows
}

// summarized returns the statistics of rows from summaries of up to 1,100 rows each.
func summarized(t *testing.T, rows []wire.Row, q wire.StatisticsQuery) wire.Analytics {
	t.Helper()
	a := NewAnalytics(q)
	const block = 1100
	for len(rows) > 0 {
		part := rows[:min(len(rows), block)]
		rows = rows[len(part):]
		summary := Summarize(len(part), func(i int) *wire.Row { return &part[i] })
		if ok, err := a.Merge(summary, true); err != nil || !ok {
			t.Fatalf("the summary of %d rows is not merged: %v", len(part), err)
		}
	}

	return a.Answer()
}

// Values that summaries have are summed up as those of rows are, however many other values there are.
func TestTheValuesOfSummariesAreThoseOfTheirRows(t *testing.T) {
	rows := hourly(2000)
	for i := range rows {
		rows[i].Engine = fmt.Sprint("model-", i%7*(i%113))
	}
	for _, by := range []string{"model", "template", "provider"} {
		question := wire.PartsQuery{StatisticsQuery: wire.StatisticsQuery{PointsMax: 50}, By: by, SeriesMax: 3}
		summed := NewParts(question)
		summed.Reach(rows[len(rows)-1].ListTime)
		summed.Reach(rows[0].ListTime)
		for part := range slices.Chunk(rows, 500) {
			summary := Summarize(len(part), func(i int) *wire.Row { return &part[i] })
			if ok, err := summed.Merge(summary, true); err != nil || !ok {
				t.Fatalf("the summary of %d rows is not merged by %s: %v", len(part), by, err)
			}
		}
		got := summed.Answer()

		question.ScoreSeries = true
		counted := NewParts(question)
		for i := range rows {
			if err := counted.Add(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
		want := counted.Answer()
		for i := range want.Items {
			for j := range want.Items[i].Series {
				want.Items[i].Series[j].Scores = got.Items[i].Series[j].Scores
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %s (-rows +summaries):\n%s", by, diff)
		}
	}
}

func TestAKeyWithAValueForEachRequestIsNotSummedUp(t *testing.T) {
	rows := hourly(2500)
	got := summarized(t, rows, wire.StatisticsQuery{})
	if diff := cmp.Diff([]string{"session"}, got.MetadataKeysWide); diff != "" {
		t.Error(diff)
	}
	values := got.MetadataValueBreakdown
	if len(values) != 2 || values[0].Requests != 1250 || len(got.MetadataKeysTop) != 2 {
		t.Errorf("the values are %+v, want two", values)
	}

	// A query for this very key needs the rows: the summary has no values of it.
	a := NewAnalytics(wire.StatisticsQuery{MetadataKey: "session"})
	summary := Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })
	if ok, err := a.Merge(summary, true); ok || err != nil {
		t.Errorf("Merge of a summary without the values of the key returns %v, %v", ok, err)
	}
}

func TestASummaryOfDaysIsNotTakenForHours(t *testing.T) {
	rows := hourly(100)
	// Without a bucket in the query, 100 hours are few enough to show each.
	for bucket, want := range map[string]bool{"": false, "hour": false, "day": true} {
		a := NewAnalytics(wire.StatisticsQuery{Bucket: bucket})
		summary := Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })
		if ok, err := a.Merge(summary, true); ok != want || err != nil {
			t.Errorf("bucket %q: Merge returns %v, %v, want %v", bucket, ok, err, want)
		}
	}
}

// A page that draws a busy hour must be as quick as one that draws a quiet year.
func TestASummaryServesTheBucketsThatAPageDraws(t *testing.T) {
	rows := hourly(900)
	for i := range rows {
		rows[i].ListTime = rows[0].ListTime.Add(-time.Duration(i) * time.Second) // a quarter of an hour
	}
	q := wire.StatisticsQuery{PointsMax: 50}
	want, _, err := statistics(rows, q)
	if err != nil {
		t.Fatal(err)
	}

	got := NewAnalytics(q)
	got.Reach(rows[len(rows)-1].ListTime)
	for part := range slices.Chunk(rows, 45) {
		row := func(i int) *wire.Row { return &part[i] }
		summary := Summarize(len(part), row)
		if ok, err := got.Merge(summary, true); err != nil || !ok {
			t.Fatalf("the summary of %d seconds is not merged: %v", len(part), err)
		}

		if !IsSummary(summary, len(part), row) || IsSummary(summary, len(part)-1, row) {
			t.Fatal("IsSummary does not recognise the rows of the summary")
		}
	}

	if diff := cmp.Diff(want, got.Answer()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A call that failed before it had tokens has no price, and nobody pays for it.
func TestAFailedCallWithoutTokensIsNotLeftOutOfTheCost(t *testing.T) {
	rows := hourly(8)
	some, none := int64(12), int64(0)
	for i, r := range []wire.Row{
		{Status: "ERROR"},
		{Status: "ERROR", InputTokens: &none, OutputTokens: &none},
		{Status: "ERROR", InputTokens: &some},
		{Status: "ERROR", OutputTokens: &some},
		{Status: "ERROR", Price: rows[0].Price},
		{Status: "WARNING"},
		{Status: "SUCCESS"},
	} {
		r.ListTime, r.Engine = rows[i].ListTime, rows[i].Engine
		rows[i] = r
	}
	counted, _, err := statistics(rows, wire.StatisticsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	sum := counted.Overall
	if sum.Unpriced != 4 || sum.Unbilled != 2 || sum.Priced() != 2 {
		t.Errorf("%d have an unknown price, %d nothing to pay for, %d a price; want 4, 2, 2",
			sum.Unpriced, sum.Unbilled, sum.Priced())
	}
	if diff := cmp.Diff(counted, summarized(t, rows, wire.StatisticsQuery{})); diff != "" {
		t.Errorf("from the summary (-counted +merged):\n%s", diff)
	}

	// One of 0.1.0 leaves all of them out.
	w := summaryWriter{b: []byte{1, 2}}
	w.varint(rows[0].ListTime.Unix())
	w.varint(rows[7].ListTime.Unix())
	w.uvarint(1)
	for _, n := range []int64{rows[7].ListTime.Unix(), 8, 5, 6, 0, 12, 12, 0, 0, 0} {
		w.varint(n)
	}
	// No latencies, nothing by name, no statuses.
	w.b = append(w.b, make([]byte, 3+3+1+4+1)...)
	a := NewAnalytics(wire.StatisticsQuery{})
	if ok, err := a.Merge(w.b, true); !ok || err != nil {
		t.Fatalf("a summary of 0.1.0 is not merged: %v, %v", ok, err)
	}
	got := a.Answer().Overall
	if got.Requests != 8 || got.Errors != 5 || got.Unpriced != 6 || got.Unbilled != 0 || got.OutputTokens != 12 {
		t.Errorf("from a summary of 0.1.0: %+v", got)
	}
}

func FuzzMerge(f *testing.F) {
	rows := hourly(60)
	whole := Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{summaryVersion, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		a := NewAnalytics(wire.StatisticsQuery{})
		if ok, err := a.Merge(b, true); err == nil {
			a.Answer()
		} else if ok {
			t.Errorf("Merge returns true and %v", err)
		}
	})
}
