package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"promptspool/api/wire"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/significance"
)

// Comparison compares the rows of two versions of a template.
type Comparison struct {
	most          int64 // rows of each version
	calls         [2]wire.ComparedCalls
	errors        [2]significance.Share
	costs, tokens [2]significance.Mean
	latencies     [2][]float64
	scores        map[scoreKey]*comparedScore
	judged        []judged // of the row added last; its memory is used again
	defined       wire.ScoreDefinitions

	differences []*significance.Comparison
	metrics     []wire.ComparedMetric
}

// ComparisonColumns are the columns that Comparison looks at.
var ComparisonColumns = tallyColumns | rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnVersion)

// comparedScore are the numbers of a score, of each version. Those of booleans are also shares.
type comparedScore struct {
	means  [2]significance.Mean
	shares [2]significance.Share
}

func (s *comparedScore) count() int { return s.shares[0].Count + s.shares[1].Count }

// NewComparison returns the comparison of no rows yet, of which it will take the first most of each
// version.
func NewComparison(a, b int, most int64, defined wire.ScoreDefinitions) *Comparison {
	c := &Comparison{most: most, scores: make(map[scoreKey]*comparedScore), defined: defined}
	c.calls[0].Version, c.calls[1].Version = a, b

	return c
}

// Add counts a row of one of the versions, and reports whether it takes more. Rows come newest first.
func (c *Comparison) Add(row *wire.Row) (more bool) {
	i := 0
	if *row.PromptVersion == int64(c.calls[1].Version) {
		i = 1
	}
	calls := &c.calls[i]
	if calls.Requests == c.most {
		calls.Incomplete = true
		return !c.calls[1-i].Incomplete
	}

	calls.Requests++
	calls.Since = row.ListTime
	c.errors[i].Count++
	if row.Status != "SUCCESS" {
		c.errors[i].Hits++
	}
	if row.Price != nil {
		c.costs[i].Add(*row.Price)
	}
	if row.InputTokens != nil || row.OutputTokens != nil {
		c.tokens[i].Add(float64(plus(orZero(row.InputTokens), orZero(row.OutputTokens))))
	}
	if row.Latency != nil {
		c.latencies[i] = append(c.latencies[i], *row.Latency)
	}
	fitting := slices.DeleteFunc(slices.Clone(row.Scores), func(s wire.Score) bool {
		return !c.defined.Of(s.Name).Fits(s.ScoreValue)
	})
	c.judged = judge(c.judged[:0], fitting)
	for _, j := range c.judged {
		c.addScore(i, j)
	}

	return true
}

// addScore counts how a call of version i was judged. Categories are not compared.
func (c *Comparison) addScore(i int, j judged) {
	if j.kind == wire.ScoreCategory {
		return
	}
	key := scoreKey{j.name, max(j.kind, wire.ScoreNumber)} // an integer is a number
	if c.scores[key] == nil && len(c.scores) < scoreNamesMax {
		key.name = strings.Clone(key.name)
		c.scores[key] = &comparedScore{}
	}
	if s := c.scores[key]; s != nil {
		x := float64(j.exact.whole) + float64(j.exact.billionths)/1e9
		s.means[i].Add(x)
		s.shares[i].Count++
		s.shares[i].Hits += x
	}
}

// compareScores compares the scores with the most values. If a name has numbers and booleans, those
// that are more count.
func (c *Comparison) compareScores() {
	keys := slices.SortedFunc(maps.Keys(c.scores), func(x, y scoreKey) int {
		return cmp.Or(cmp.Compare(c.scores[y].count(), c.scores[x].count()),
			strings.Compare(x.name, y.name), cmp.Compare(x.kind, y.kind))
	})
	seen := make(map[string]bool)
	for _, key := range keys {
		if seen[key.name] || len(seen) == wire.AnalyticsListMax {
			continue
		}
		seen[key.name] = true

		better := "higher"
		if d := c.defined.Of(key.name); d != nil {
			better = d.Better
		}
		if s := c.scores[key]; key.kind == wire.ScoreBoolean {
			c.compare("score", key.name, "newcombe", better, significance.Shares(s.shares[0], s.shares[1]))
		} else {
			c.compare("score", key.name, "welch", better, significance.Means(&s.means[0], &s.means[1]))
		}
	}
}

// Answer returns the comparison in the form of the API. It is called once; late means that there may be
// more rows.
func (c *Comparison) Answer(late bool) wire.VersionComparison {
	for i := range c.calls {
		if c.calls[i].Incomplete = c.calls[i].Incomplete || late; !c.calls[i].Incomplete {
			c.calls[i].Progress = wire.Progress{}
		}
	}

	c.compareScores()
	c.compare("errors", "", "newcombe", "lower", significance.Shares(c.errors[0], c.errors[1]))
	c.compare("cost", "", "welch", "lower", significance.Means(&c.costs[0], &c.costs[1]))
	c.compare("latency_p50", "", "bootstrap", "lower", significance.Quantiles(0.5, c.latencies[0], c.latencies[1]))
	c.compare("latency_p95", "", "bootstrap", "lower", significance.Quantiles(0.95, c.latencies[0], c.latencies[1]))
	c.compare("tokens", "", "welch", "", significance.Means(&c.tokens[0], &c.tokens[1]))

	significance.Judge(c.differences)
	for i, d := range c.differences {
		m := &c.metrics[i]
		m.Verdict, m.Needed = verdict(d, m.Better), int64(d.Needed)
		if d.Enough {
			m.Low, m.High = &d.Low, &d.High
		}
	}

	return wire.VersionComparison{Success: true, A: c.calls[0], B: c.calls[1], Metrics: c.metrics}
}

func (c *Comparison) compare(metric, name, method, better string, d significance.Comparison) {
	c.differences = append(c.differences, &d)
	c.metrics = append(c.metrics, wire.ComparedMetric{
		Metric: metric, Name: name, Method: method, Better: better,
		CountA: int64(d.CountA), CountB: int64(d.CountB), A: d.A, B: d.B,
	})
}

// verdict names what a comparison shows, by which values are better.
func verdict(d *significance.Comparison, better string) string {
	switch {
	case d.Verdict == significance.TooFew:
		return wire.VerdictTooFew
	case d.Verdict == significance.NoDifference:
		return wire.VerdictNoDifference
	case better == "":
		return wire.VerdictDifferent
	case (better == "higher") == (d.B > d.A):
		return wire.VerdictBetter
	}

	return wire.VerdictWorse
}
