package query

import (
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"promptspool/api/wire"
)

// manyScores returns rows a minute apart, newest first. Each has its own score names.
func manyScores(rows, names int) []wire.Row {
	all := make([]wire.Row, rows)
	for i := range all {
		at := time.Unix(1_800_000_000, 0).Add(-time.Duration(i) * time.Minute)
		all[i] = wire.Row{ListTime: at, Engine: "m", Status: "SUCCESS"}
		for j := range names {
			name := fmt.Sprintf("score-%02d-%04d", i, j)
			all[i].Scores = append(all[i].Scores, wire.IntegerScore(name, j%101))
		}
	}

	return all
}

func TestScoresOfManyNamesTakeLittleRoom(t *testing.T) {
	rows := manyScores(20, 5000)

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	a := NewAnalytics(wire.StatisticsQuery{})
	for i := range rows {
		if err := a.Add(&rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	answer := a.Answer()
	runtime.ReadMemStats(&after)

	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 || len(text) > 4<<20 {
		t.Errorf("100,000 names allocate %d MiB and give an answer of %d bytes", used>>20, len(text))
	}

	got := answer.Overall.Scores
	if len(got) != scoreNamesMax+1 || got[0].Name != "score-00-0000" || got[scoreNamesMax].Name != wire.ScoresOther {
		t.Fatalf("the answer has %d names of 100,000, want %d and %q", len(got), scoreNamesMax, wire.ScoresOther)
	}
	if all := got[scoreNamesMax].Count + scoreNamesMax; all != 100_000 {
		t.Errorf("%d scores are counted, want 100,000", all)
	}
}

// drawValue draws a score of any kind, seldom as its name has most.
func drawValue(t *rapid.T, name int) wire.ScoreValue {
	switch kind := (name + rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(t, "odd")) % 4; kind {
	case 0:
		return wire.ScoreValue{Number: float64(rapid.IntRange(0, 100).Draw(t, "integer"))}
	case 1:
		return wire.NumberScore(rapid.Float64Range(-2, wire.ScoreNumberMax).Draw(t, "number"))
	case 2:
		return wire.ScoreValue{Kind: wire.ScoreBoolean, Number: float64(rapid.IntRange(0, 1).Draw(t, "boolean"))}
	default:
		value, _ := wire.CategoryScore(fmt.Sprint("category ", rapid.IntRange(0, 3*categoriesMax).Draw(t, "category")))
		return value
	}
}

// drawScores draws the scores of a row, some by several authors.
func drawScores(t *rapid.T, names *rapid.Generator[[]int]) (scores []wire.Score) {
	drawn := names.Draw(t, "names")
	slices.Sort(drawn)
	for _, n := range slices.Compact(drawn) {
		for author := range rapid.SampledFrom([]int{1, 1, 2, 40}).Draw(t, "authors") {
			slot := wire.ScoreSlot{Name: fmt.Sprintf("name-%03d", n), Author: fmt.Sprintf("author-%02d", author)}
			scores = append(scores, wire.Score{ScoreSlot: slot, ScoreValue: drawValue(t, n)})
		}
	}

	return scores
}

// Statistics must not depend on which rows a store has summarised so far, nor on their order.
func TestScoresAreTheSameFromRowsAndSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{3, 400}).Draw(t, "different names")
		names := rapid.SliceOfN(rapid.IntRange(0, most), 1, 40)
		rows := make([]wire.Row, rapid.IntRange(1, 40).Draw(t, "rows"))
		for i := range rows {
			at := time.Unix(1_800_000_000, 0).Add(-time.Duration(i) * time.Hour)
			rows[i] = wire.Row{ListTime: at, Engine: fmt.Sprint("model-", i%3), Status: "SUCCESS"}
			rows[i].Scores = drawScores(t, names)
		}
		want, _, err := statistics(rapid.Permutation(rows).Draw(t, "order"), wire.StatisticsQuery{})
		if err != nil {
			t.Fatal(err)
		}

		// Some rows of each summary had other scores, and are removed and counted on their own, as
		// happens after a late score.
		got := NewAnalytics(wire.StatisticsQuery{})
		got.Reach(rows[len(rows)-1].ListTime)
		got.Reach(rows[0].ListTime)
		for part := range slices.Chunk(rows, rapid.IntRange(1, 40).Draw(t, "block")) {
			late := rapid.IntRange(0, min(3, len(part))).Draw(t, "late")
			before := slices.Clone(part)
			for i := range late {
				before[i].Scores = drawScores(t, names)
			}
			summary := Summarize(len(part), func(i int) *wire.Row { return &before[i] })
			merged, err := got.Merge(summary, late == 0)
			if err != nil {
				t.Fatal(err)
			}

			if !merged {
				late = len(part)
			}
			for i := range part[:late] {
				if merged {
					got.Remove(&before[i])
				}
			}
			for i := range part[:late] {
				if err := got.Add(&part[i]); err != nil {
					t.Fatal(err)
				}
			}
		}

		if diff := cmp.Diff(want, got.Answer()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// scored returns a row with these scores, which must be in order.
func scored(scores ...wire.Score) wire.Row {
	return wire.Row{ListTime: time.Unix(1_800_000_000, 0), Status: "SUCCESS", Scores: scores}
}

func by(author, name string, value wire.ScoreValue) wire.Score {
	return wire.Score{ScoreSlot: wire.ScoreSlot{Name: name, Author: author}, ScoreValue: value}
}

func category(text string) wire.ScoreValue {
	value, _ := wire.CategoryScore(text)
	return value
}

func TestAScoreIsSummedUpAsWhatMostOfItsValuesAre(t *testing.T) {
	isFalse := wire.ScoreValue{Kind: wire.ScoreBoolean}
	isTrue := wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1}
	rows := []wire.Row{
		// Two authors of one call count once, by their mean, except for categories.
		scored(by("ann", "cited", isTrue), by("bob", "cited", isFalse), by("ann", "tone", category("rude")),
			by("bob", "tone", category("kind"))),
		scored(by("", "cited", isTrue), by("", "faithful", wire.NumberScore(0.3)), by("", "tone", category("rude"))),
		scored(by("", "faithful", wire.NumberScore(0.83)), by("", "stars", wire.NumberScore(4)),
			wire.IntegerScore("tone", 7)),
		scored(by("", "faithful", wire.NumberScore(830)), by("", "stars", wire.NumberScore(-2))),
	}
	sums := func(definitions ...wire.ScoreDefinition) map[string]wire.ScoreSum {
		answer, _, err := statistics(rows, wire.StatisticsQuery{Definitions: definitions})
		if err != nil {
			t.Fatal(err)
		}
		named := make(map[string]wire.ScoreSum)
		for _, s := range answer.Scores {
			named[s.Name] = s
		}

		return named
	}
	zero, one, ten, thousand := 0.0, 1.0, 10.0, 1000.0
	check := func(got wire.ScoreSum, want wire.ScoreSum) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}

	all := sums()
	check(all["cited"], wire.ScoreSum{Name: "cited", Kind: "boolean", Count: 2, Mean: 0.75, Min: 0.5, Max: 1, P50: 0.5,
		Histogram: [10]int64{5: 1, 9: 1}, From: &zero, To: &one})
	tones := []wire.CategoryCount{{Value: "rude", Count: 2, Share: 2.0 / 3}, {Value: "kind", Count: 1, Share: 1.0 / 3}}
	check(all["tone"], wire.ScoreSum{Name: "tone", Kind: "category", Count: 3, Unfit: 1, Categories: tones})
	check(all["faithful"], wire.ScoreSum{Name: "faithful", Kind: "number", Count: 3, Mean: 831.13 / 3, Min: 0.3,
		Max: all["faithful"].Max, P50: 0.83, Histogram: [10]int64{0: 2, 8: 1}, From: &zero, To: &thousand})
	if least := all["faithful"].Max; least > 830 || least < 830*0.992 {
		t.Errorf("the greatest of 830 is %v", least)
	}
	minusTen := -ten
	check(all["stars"], wire.ScoreSum{Name: "stars", Kind: "number", Count: 2, Mean: 1, Min: -2, Max: 4, P50: -2,
		Histogram: [10]int64{4: 1, 7: 1}, From: &minusTen, To: &ten})

	// What a definition does not allow is counted apart, however large it is.
	all = sums(wire.ScoreDefinition{Name: "cited", Kind: "number"},
		wire.ScoreDefinition{Name: "faithful", Kind: "number", Min: &zero, Max: &one},
		wire.ScoreDefinition{Name: "tone", Kind: "category", Categories: []string{"kind"}})
	check(all["faithful"], wire.ScoreSum{Name: "faithful", Kind: "number", Count: 2, Unfit: 1, Mean: 0.565, Min: 0.3,
		Max: 0.83, P50: 0.3, Histogram: [10]int64{3: 1, 8: 1}, From: &zero, To: &one})
	check(all["tone"], wire.ScoreSum{Name: "tone", Kind: "category", Count: 1, Unfit: 3,
		Categories: []wire.CategoryCount{{Value: "kind", Count: 1, Share: 1}}})
	check(all["cited"], wire.ScoreSum{Name: "cited", Kind: "number", Unfit: 2})
}

// A person's score beside the app's counts in a comparison as it does in statistics, whether it fits or not.
func TestAComparisonTakesAuthorsTogetherAsStatisticsDo(t *testing.T) {
	by := func(author, name string, v wire.ScoreValue) wire.Score {
		return wire.Score{ScoreSlot: wire.ScoreSlot{Name: name, Author: author}, ScoreValue: v}
	}
	version := int64(1)
	var rows []wire.Row
	for _, of := range [][]wire.Score{
		{by("", "faithful", wire.NumberScore(0.5)), by("ann", "faithful", wire.NumberScore(0.7))},
		{by("", "faithful", wire.NumberScore(0.5)), by("ann", "faithful", wire.NumberScore(80))},
		{by("", "cited", wire.ScoreValue{Kind: wire.ScoreBoolean}),
			by("ann", "cited", wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1})},
		{by("", "cited", wire.ScoreValue{Kind: wire.ScoreBoolean, Number: 1})},
	} {
		rows = append(rows, wire.Row{ListTime: time.Now(), PromptVersion: &version, Scores: of})
	}
	defined := wire.ScoreDefinitions{{Name: "faithful", Kind: "number", Min: new(0.0), Max: new(1.0)}}

	answer, _, err := statistics(rows, wire.StatisticsQuery{Definitions: defined})
	if err != nil {
		t.Fatal(err)
	}
	q := wire.PartsQuery{Compare: []int{1, 2}}
	q.Definitions = defined
	c := NewComparison(q, 1000)
	for i := range rows {
		c.Add(&rows[i])
	}
	other := wire.Row{ListTime: time.Now(), PromptVersion: new(int64(2)), Scores: rows[3].Scores}
	c.Add(&other)
	compared := 0
	for _, m := range c.Answer(false).Metrics {
		sum := wire.SumOf(answer.Scores, m.Name)
		if m.Metric != "score" {
			continue
		}
		compared++
		if m.CountA != sum.Count || math.Abs(m.A-sum.Mean) > 0.008 {
			t.Errorf("%s: %d of %v are compared, and statistics have %d of %v",
				m.Name, m.CountA, m.A, sum.Count, sum.Mean)
		}
	}
	if compared != 2 {
		t.Errorf("%d scores are compared, want 2", compared)
	}
}

func TestAClassOfNumbersIsShownByItsRoundestOne(t *testing.T) {
	for i := range 129 {
		if x := float64(i); classShown(scoreClass(x)) != x || classShown(scoreClass(-x)) != -x {
			t.Errorf("%d is shown as %v and %v", i, classShown(scoreClass(x)), classShown(scoreClass(-x)))
		}
		if x := float64(i) / 100; i <= 100 && classShown(scoreClass(x)) != x {
			t.Errorf("%v is shown as %v", x, classShown(scoreClass(x)))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-9, wire.ScoreNumberMax).Draw(t, "number")
		if shown := classShown(scoreClass(x)); shown > x*1.008 || shown < x*0.992 {
			t.Fatalf("%v is shown as %v", x, shown)
		}
		y := rapid.Float64Range(-1, wire.ScoreNumberMax).Draw(t, "another")
		if scoreClass(y) != scoreClass(x) && y > x != (scoreClass(y) > scoreClass(x)) {
			t.Fatalf("the classes of %v and %v are in another order", x, y)
		}
	})
}
