package query_test

import (
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

func TestAComparisonEndsWhenBothVersionsHaveEnough(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := query.NewComparison(7, 8, 2, nil)
	for i, step := range []struct {
		version int64
		more    bool
	}{{8, true}, {8, true}, {8, true}, {7, true}, {8, true}, {7, true}, {7, false}} {
		row := wire.Row{ListTime: now.Add(-time.Duration(i) * time.Minute), PromptVersion: &step.version}
		if more := c.Add(&row); more != step.more {
			t.Errorf("after row %d, it takes more: %t", i, more)
		}
	}

	w := c.Answer(false)
	since := func(minutes int) wire.Progress {
		return wire.Progress{Incomplete: true, Since: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	a := wire.ComparedCalls{Version: 7, Requests: 2, Progress: since(5)}
	b := wire.ComparedCalls{Version: 8, Requests: 2, Progress: since(1)}
	if w.A != a || w.B != b {
		t.Errorf("compared are %+v and %+v", w.A, w.B)
	}
}

func TestWhatIsBetterDependsOnTheMetric(t *testing.T) {
	toxic := wire.ScoreDefinition{Name: "toxic", Kind: "boolean", Better: "lower"}
	c := query.NewComparison(1, 2, 1000, wire.ScoreDefinitions{toxic})
	for i := range int64(800) {
		version, slower := i%2+1, float64(i%2)
		price, latency := 0.01+0.001*slower, 1+slower
		isTrue := wire.ScoreValue{Kind: wire.ScoreBoolean, Number: slower}
		tokens := 100 + 10*(i%2)
		c.Add(&wire.Row{
			PromptVersion: &version,
			Status:        []string{"SUCCESS", "ERROR"}[i%2],
			Price:         &price,
			Latency:       &latency,
			InputTokens:   &tokens,
			Scores: []wire.Score{
				wire.IntegerScore("helpful", int(50+i%2)),
				{ScoreSlot: wire.ScoreSlot{Name: "toxic"}, ScoreValue: isTrue},
			},
		})
	}

	w := c.Answer(false)
	got := ""
	for _, m := range w.Metrics {
		got += m.Metric + " " + m.Verdict + "\n"
	}
	const want = "score better\nscore worse\nerrors worse\ncost worse\nlatency_p50 worse\n" +
		"latency_p95 worse\ntokens different\n"
	if got != want || w.A.Incomplete || !w.B.Since.IsZero() {
		t.Errorf("%+v %+v:\n%s", w.A, w.B, got)
	}
	w = query.NewComparison(1, 2, 9, nil).Answer(true)
	if !w.A.Incomplete || w.Metrics[0].Verdict != wire.VerdictTooFew {
		t.Errorf("%+v", w)
	}
}
