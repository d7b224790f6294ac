package query

import (
	"math"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
)

// tally sums up rows. All sums are of integers, so that they are the same in any order.
// The zero tally is empty.
type tally struct {
	count
	errors, unpriced int64
	unbilled         int64 // of unpriced: failed without tokens
	// Tokens, summed up by plus.
	cached, written, thinking int64

	latency histogram
	scores  scoreSums // empty unless the dimension counts scores by bucket
}

// tallyColumns are the columns that add and scoreBound.add look at.
var tallyColumns = rowcode.ColumnsOf(
	rowcode.ColumnStatus, rowcode.ColumnCost, rowcode.ColumnInputTokens, rowcode.ColumnOutputTokens,
	rowcode.ColumnCachedTokens, rowcode.ColumnCacheWrites, rowcode.ColumnReasoningTokens, rowcode.ColumnLatency,
	rowcode.ColumnScores,
)

// add counts a row n times, apart from its scores: once, or -1 times to take back one
// that was counted.
func (t *tally) add(row *wire.Row, n int64) {
	t.count.add(row, n)
	if row.Status != "SUCCESS" {
		t.errors += n
	}
	// Of unknown price is not free, unless it failed before it had tokens: people are told how many
	// calls the cost leaves out.
	if row.Price == nil {
		t.unpriced += n
		if row.Status == "ERROR" && wire.OrZero(row.InputTokens) == 0 && wire.OrZero(row.OutputTokens) == 0 {
			t.unbilled += n
		}
	}
	t.cached = plus(t.cached, n*wire.OrZero(row.CachedTokens))
	t.written = plus(t.written, n*wire.OrZero(row.CacheWrites))
	t.thinking = plus(t.thinking, n*wire.OrZero(row.ReasoningTokens))
	if row.Latency != nil {
		t.latency.add(time.Duration(math.Round(*row.Latency*1e9)), n)
	}
}

// merge adds another tally, apart from its scores.
func (t *tally) merge(other *tally) {
	t.count.merge(other.count)
	t.errors += other.errors
	t.unpriced += other.unpriced
	t.unbilled += other.unbilled
	t.cached = plus(t.cached, other.cached)
	t.written = plus(t.written, other.written)
	t.thinking = plus(t.thinking, other.thinking)
	t.latency.merge(&other.latency)
}

// plus adds n to a sum. A sum that would overflow stays at the maximum.
func plus(sum, n int64) int64 {
	switch {
	// Nothing is taken back from the maximum: what was cut off is unknown, and the result
	// must not depend on the order.
	case sum == math.MaxInt64 || n > 0 && sum > math.MaxInt64-n:
		return math.MaxInt64
	case n < 0 && sum < math.MinInt64-n:
		return math.MinInt64
	default:
		return sum + n
	}
}

// nanos converts dollars to billionths of a dollar.
func nanos(cost float64) int64 { return int64(math.Round(cost * 1e9)) }

// dollars converts billionths of a dollar to dollars.
func dollars(nanos int64) float64 { return float64(nanos) / 1e9 }

func (c *count) cost() float64 { return dollars(c.costNanos) }

func (c *count) tokens() int64 { return plus(c.input, c.output) }

// totals returns the tally in the form of the API, with the scores given.
func (t *tally) totals(scores []wire.ScoreSum) wire.Totals {
	w := wire.Totals{
		Requests:       t.requests,
		Errors:         t.errors,
		Cost:           t.cost(),
		Unpriced:       t.unpriced - t.unbilled,
		Unbilled:       t.unbilled,
		InputTokens:    t.input,
		OutputTokens:   t.output,
		CachedTokens:   t.cached,
		CacheWrites:    t.written,
		ThinkingTokens: t.thinking,
		Latency: wire.Percentiles{
			Mean: t.latency.mean(),
			P50:  t.latency.quantile(0.5),
			P90:  t.latency.quantile(0.9),
			P95:  t.latency.quantile(0.95),
			P99:  t.latency.quantile(0.99),
		},
		Scores: scores,
	}
	if t.requests > 0 {
		w.ErrorRate = float64(t.errors) / float64(t.requests)
	}

	return w
}
