package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
)

func TestAComparisonEndsWhenBothVersionsHaveEnough(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := query.NewComparison(wire.PartsQuery{Compare: []int{7, 8}}, 2)
	for i, step := range []struct {
		version int64
		more    bool
	}{
		{8, true}, {8, true}, {8, true}, // more than it takes, but version 7 does not run yet
		{7, true}, {8, true}, {8, true}, {8, true}, {7, true}, {7, false},
	} {
		row := wire.Row{ListTime: now.Add(-time.Duration(i) * time.Minute), PromptVersion: &step.version}
		if more := c.Add(&row); more != step.more {
			t.Errorf("after row %d, it takes more: %t", i, more)
		}
	}

	w := c.Answer(false)
	since := func(minutes int) wire.Progress {
		return wire.Progress{Incomplete: true, Since: now.Add(-time.Duration(minutes) * time.Minute)}
	}
	a := wire.ComparedCalls{Version: 7, Requests: 2, Progress: since(7)}
	b := wire.ComparedCalls{Version: 8, Requests: 4, Progress: since(5)}
	if w.A != a || w.B != b {
		t.Errorf("compared are %+v and %+v", w.A, w.B)
	}
}

func TestWhatIsBetterDependsOnTheMetric(t *testing.T) {
	toxic := wire.ScoreDefinition{Name: "toxic", Kind: "boolean", Better: "lower"}
	q := wire.PartsQuery{Compare: []int{1, 2}}
	q.Definitions = wire.ScoreDefinitions{toxic}
	c := query.NewComparison(q, 1000)
	for i := range int64(800) {
		version, slower := i%2+1, float64(i%2)
		price, latency := 0.01+0.001*slower, 1+slower
		isTrue := wire.ScoreValue{Kind: wire.ScoreBoolean, Number: slower}
		tokens := 100 + 10*(i%2)
		c.Add(&wire.Row{
			ListTime:      time.Unix(1_800_000_000-100*i, 0),
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
	w = query.NewComparison(wire.PartsQuery{Compare: []int{1, 2}}, 9).Answer(true)
	if !w.A.Incomplete || w.Together || w.Metrics[0].Verdict != wire.VerdictTooFew || w.Note != "" {
		t.Errorf("%+v", w)
	}
}

var (
	yes = wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1}
	no  = wire.ScoreValue{Kind: wire.ScoreBoolean}
)

// judgedBy returns rows that ann and bob have both scored with these values.
func judgedBy(n int, ann, bob wire.ScoreValue) (rows []wire.Row) {
	for range n {
		rows = append(rows, wire.Row{Scores: []wire.Score{
			{ScoreSlot: wire.ScoreSlot{Name: "other", Author: "ann"}, ScoreValue: wire.NumberScore(1)},
			{ScoreSlot: wire.ScoreSlot{Name: "ok", Author: "ann"}, ScoreValue: ann},
			{ScoreSlot: wire.ScoreSlot{Name: "ok", Author: "bob"}, ScoreValue: bob},
		}})
	}

	return rows
}

// agreed returns the agreement on the score ok, which is of a kind, of some rows, in any order.
func agreed(kind string, groups ...[]wire.Row) wire.ScoreAgreement {
	var rows []wire.Row
	for _, group := range groups {
		rows = append(rows, group...)
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	a := query.NewAgreement(wire.ScoreDefinition{Name: "ok", Kind: kind}, 1000)
	for i := range rows {
		a.Add(&rows[i])
	}

	return a.Answer(false)
}

func TestAuthorsAgreeByMoreThanChance(t *testing.T) {
	category := func(text string) wire.ScoreValue {
		return wire.ScoreValue{Kind: wire.ScoreCategory, Text: text}
	}
	integer := wire.ScoreValue{Number: 1}
	for name, c := range map[string]struct {
		got  wire.ScoreAgreement
		want string
	}{
		// 35 of 50 are equal, and 25 would be by chance.
		"booleans": {
			agreed("boolean", judgedBy(20, yes, yes), judgedBy(5, yes, no),
				judgedBy(10, no, yes), judgedBy(15, no, no)),
			"50 0.70 0.400",
		},
		// 140 of 200 are equal, and 82 would be by chance.
		"categories": {
			agreed("category",
				judgedBy(88, category("a"), category("a")), judgedBy(10, category("a"), category("b")),
				judgedBy(2, category("a"), category("c")), judgedBy(14, category("b"), category("a")),
				judgedBy(40, category("b"), category("b")), judgedBy(6, category("b"), category("c")),
				judgedBy(18, category("c"), category("a")), judgedBy(10, category("c"), category("b")),
				judgedBy(12, category("c"), category("c"))),
			"200 0.70 0.492",
		},
		"never":    {agreed("boolean", judgedBy(2, yes, no), judgedBy(2, no, yes)), "4 0.00 -1.000"},
		"all same": {agreed("boolean", judgedBy(7, yes, yes)), "7 1.00 undefined"},
		"numbers": {
			agreed("number", judgedBy(3, integer, wire.NumberScore(1)), judgedBy(1, integer, wire.NumberScore(0.5))),
			"4 0.75 undefined",
		},
		"unfit": {
			agreed("boolean", judgedBy(2, yes, no), judgedBy(3, yes, integer)),
			"2 0.00 0.000",
		},
	} {
		got := ""
		for _, p := range c.got.Pairs {
			kappa := "undefined"
			if p.Kappa != nil {
				kappa = fmt.Sprintf("%.3f", *p.Kappa)
			}
			got += fmt.Sprintf("%d %.2f %s", p.Both, p.Equal, kappa)
		}
		if got != c.want || c.got.Incomplete {
			t.Errorf("%s: %s, want %s (%+v)", name, got, c.want, c.got)
		}
	}
}

// Of many authors, those that scored most often with others are compared, by their newest scores.
func TestAnAgreementHasAFewAuthorsAndTheNewestScores(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	rows := []wire.Row{{ListTime: now}, {ListTime: now.Add(-time.Minute)}, {ListTime: now.Add(-time.Hour)}}
	for author := range 8 {
		slot := wire.ScoreSlot{Name: "ok", Author: fmt.Sprint("judge ", author)}
		rows[0].Scores = append(rows[0].Scores, wire.Score{ScoreSlot: slot, ScoreValue: yes})
		if author > 0 {
			rows[1].Scores = append(rows[1].Scores, wire.Score{ScoreSlot: slot, ScoreValue: no})
		}
	}

	a := query.NewAgreement(wire.ScoreDefinition{Name: "ok", Kind: "boolean"}, len(rows[0].Scores)+1)
	for i, more := range []bool{true, true, false} {
		if got := a.Add(&rows[i]); got != more {
			t.Errorf("after row %d, it takes more: %t", i, got)
		}
	}
	w := a.Answer(false)
	kappa := 1.0
	first := wire.AuthorPair{A: "judge 1", B: "judge 2", Both: 2, Equal: 1, Kappa: &kappa}
	if len(w.Pairs) != 15 || cmp.Diff(first, w.Pairs[0]) != "" {
		t.Errorf("compared are %+v", w.Pairs)
	}
	if want := (wire.Progress{Incomplete: true, Since: rows[1].ListTime}); w.Progress != want {
		t.Errorf("progress is %+v, want %+v", w.Progress, want)
	}
}
