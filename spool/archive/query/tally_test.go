package query

import (
	"math"
	"testing"
	"time"

	"promptspool/api/wire"
)

// Earlier versions accepted prices up to 9,000,000,000 dollars. Events that still wait in a
// spool may have such a price.
func TestSumsDoNotWrap(t *testing.T) {
	price, tokens, latency := 8_999_999_999.0, int64(1<<62), 9e9
	row := wire.Row{
		RequestID:       "r",
		ListTime:        time.Unix(1_700_000_000, 0),
		Status:          "SUCCESS",
		Engine:          "gpt-4o",
		Provider:        "openai",
		Price:           &price,
		InputTokens:     &tokens,
		OutputTokens:    &tokens,
		CachedTokens:    &tokens,
		CacheWrites:     &tokens,
		ReasoningTokens: &tokens,
		Latency:         &latency,
		Tags:            []string{"a"},
		Metadata:        []wire.MetadataRow{{Key: "user", Value: "ann"}},
	}
	rows := []wire.Row{row, row, row}
	summary := Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })

	counted := NewAnalytics(wire.StatisticsQuery{Bucket: "day"})
	merged := NewAnalytics(wire.StatisticsQuery{Bucket: "day"})
	for i := range rows {
		if err := counted.Add(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := merged.Merge(summary, true); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if ok, err := merged.Merge(summary, true); err != nil || !ok {
		t.Fatal(ok, err)
	}

	for how, a := range map[string]*Analytics{"counted": counted, "merged": merged} {
		sums := a.Answer()
		if sums.TotalCost < price || sums.TotalTokens != math.MaxInt64 ||
			sums.AverageLatency == nil || *sums.AverageLatency < 0 {
			t.Errorf("%s: %v dollars, %d tokens, latency %v",
				how, sums.TotalCost, sums.TotalTokens, sums.AverageLatency)
		}
		for _, b := range append(sums.TagsBreakdown, sums.ProviderBreakdown...) {
			if b.Cost < price || b.Tokens < 0 {
				t.Errorf("%s: %+v", how, b)
			}
		}
	}
}

func TestASumStaysAtTheMost(t *testing.T) {
	for _, c := range []struct{ sum, n, want int64 }{
		{1, 2, 3}, {3, -2, 1}, {0, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64 - 1, 2, math.MaxInt64}, {math.MaxInt64, -5, math.MaxInt64},
		{math.MinInt64 + 1, -2, math.MinInt64},
	} {
		if got := plus(c.sum, c.n); got != c.want {
			t.Errorf("%d plus %d is %d, want %d", c.sum, c.n, got, c.want)
		}
	}
}
