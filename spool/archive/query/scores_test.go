package query

import (
	"encoding/json"
	"fmt"
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

func TestAScoreAskedForByNameIsToldAmongMany(t *testing.T) {
	rows := manyScores(20, 5000)
	for _, f := range []wire.Filter{
		{Field: "score_name", Operator: "is", Value: json.RawMessage(`"score-07-4321"`)},
		{Filters: []wire.Filter{
			{Field: "score_name", Operator: "in", Value: json.RawMessage(`["x", "score-07-4321"]`)},
		}},
		{Field: "score", NestedKey: "score-07-4321", Operator: "gte", Value: json.RawMessage(`0`)},
	} {
		got, _, err := Statistics(rows[7:8], wire.StatisticsQuery{FilterGroup: &f})
		if err != nil {
			t.Fatal(err)
		}

		i := slices.IndexFunc(got.Overall.Scores, func(s wire.ScoreSum) bool { return s.Name == "score-07-4321" })
		if i < 0 || got.Overall.Scores[i].Count != 1 || got.Overall.Scores[i].P50 != 4321%101 {
			t.Errorf("%+v: the score is missing or wrong among %d", f, len(got.Overall.Scores))
		}
	}
}

// Statistics must not depend on which rows a store has summarised so far.
func TestScoresOfManyNamesAreTheSameFromRowsAndSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.IntRange(0, 400), 1, 40)
		rows := make([]wire.Row, rapid.IntRange(1, 40).Draw(t, "rows"))
		for i := range rows {
			at := time.Unix(1_800_000_000, 0).Add(-time.Duration(i) * time.Hour)
			rows[i] = wire.Row{ListTime: at, Engine: fmt.Sprint("model-", i%3), Status: "SUCCESS"}

			drawn := names.Draw(t, "names")
			slices.Sort(drawn)
			for _, n := range slices.Compact(drawn) {
				rows[i].Scores = append(rows[i].Scores, wire.IntegerScore(fmt.Sprintf("name-%03d", n), n%101))
			}
		}
		want, _, err := Statistics(rows, wire.StatisticsQuery{})
		if err != nil {
			t.Fatal(err)
		}

		// Some rows of each summary are removed and counted on their own, as happens after a
		// late score.
		got := NewAnalytics(wire.StatisticsQuery{})
		got.Reach(rows[len(rows)-1].ListTime)
		got.Reach(rows[0].ListTime)
		for part := range slices.Chunk(rows, rapid.IntRange(1, 40).Draw(t, "block")) {
			late := rapid.IntRange(0, min(3, len(part))).Draw(t, "late")
			summary := Summarize(len(part), func(i int) *wire.Row { return &part[i] })
			merged, err := got.Merge(summary, late == 0)
			if err != nil {
				t.Fatal(err)
			}

			if !merged {
				late = len(part)
			}
			for i := range part[:late] {
				if merged {
					got.Remove(&part[i])
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
