package query

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"promptspool/api/wire"
)

// benchRows returns the rows of a block, with three scores each.
func benchRows(value func(r *rand.Rand, name string) wire.Score) []wire.Row {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]wire.Row, 4096)
	for i := range rows {
		price, latency, name := r.Float64()/100, r.Float64()*10, fmt.Sprint("template-", r.IntN(5))
		rows[i] = wire.Row{
			ListTime: time.Unix(1_800_000_000, 0).Add(-time.Duration(i) * 20 * time.Second),
			Engine:   fmt.Sprint("model-", r.IntN(5)), Provider: "openai", Status: "SUCCESS",
			Price: &price, Latency: &latency, PromptName: &name,
			Metadata: []wire.MetadataRow{{Key: "user", Value: fmt.Sprint("user-", r.IntN(50))}},
		}
		for _, name := range []string{"correct", "faithful", "helpful"} {
			rows[i].Scores = append(rows[i].Scores, value(r, name))
		}
	}

	return rows
}

var benchScores = map[string]func(r *rand.Rand, name string) wire.Score{
	"integers": func(r *rand.Rand, name string) wire.Score { return wire.IntegerScore(name, r.IntN(101)) },
	"numbers": func(r *rand.Rand, name string) wire.Score {
		return wire.Score{ScoreSlot: wire.ScoreSlot{Name: name}, ScoreValue: wire.NumberScore(r.Float64())}
	},
}

func BenchmarkStatistics(b *testing.B) {
	for name, value := range benchScores {
		rows := benchRows(value)
		row := func(i int) *wire.Row { return &rows[i] }
		b.Run("rows of "+name, func(b *testing.B) {
			a := NewAnalytics(wire.StatisticsQuery{})
			for b.Loop() {
				for i := range rows {
					if err := a.Add(&rows[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run("make a summary of "+name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(float64(len(Summarize(len(rows), row))), "stored-bytes")
			}
		})
		b.Run("merge a summary of "+name, func(b *testing.B) {
			a, summary := NewAnalytics(wire.StatisticsQuery{}), Summarize(len(rows), row)
			for b.Loop() {
				if ok, err := a.Merge(summary, true); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run("answer of "+name, func(b *testing.B) {
			a := NewAnalytics(wire.StatisticsQuery{})
			for i := range rows {
				if err := a.Add(&rows[i]); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				a.Answer()
			}
		})
	}
}
