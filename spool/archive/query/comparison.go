package query

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unique"

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

// agreeingMax is how many authors of a score an Agreement compares: those that scored most often with
// others.
const agreeingMax = 6

// Agreement compares the authors of one score by the targets that several of them scored.
type Agreement struct {
	of      wire.ScoreDefinition
	most    int // values
	seen    int
	targets []map[string]wire.ScoreValue // by author; those of several authors
	wire.Progress
}

// AgreementColumns are the columns that Agreement looks at.
var AgreementColumns = rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnScores)

// NewAgreement returns the agreement on a score without any values yet. It takes rows until it has seen
// most values, and leaves out those that do not fit the definition.
func NewAgreement(d wire.ScoreDefinition, most int) *Agreement { return &Agreement{of: d, most: most} }

// Add counts a row, and reports whether it takes more. Rows come newest first.
func (a *Agreement) Add(row *wire.Row) (more bool) {
	if a.seen >= a.most {
		a.Incomplete = true
		return false
	}

	a.Since = row.ListTime
	values := map[string]wire.ScoreValue{}
	for _, s := range row.Scores {
		if s.Name != a.of.Name {
			continue
		}
		a.seen++
		if !a.of.Fits(s.ScoreValue) {
			continue
		}
		if s.IsNumber() {
			s.Kind = wire.ScoreNumber // an integer says the same as an equal number
		}
		// One copy for all targets, and none of a store's memory.
		values[unique.Make(s.Author).Value()] = unique.Make(s.ScoreValue).Value()
	}
	if len(values) > 1 {
		a.targets = append(a.targets, values)
	}

	return true
}

// Answer returns each two authors with targets in common, sorted. late means that there may be more rows.
func (a *Agreement) Answer(late bool) wire.ScoreAgreement {
	w := wire.ScoreAgreement{Pairs: []wire.AuthorPair{}, Progress: a.Progress}
	if w.Incomplete = w.Incomplete || late; !w.Incomplete {
		w.Progress = wire.Progress{}
	}

	counts := map[string]int{}
	for _, values := range a.targets {
		for author := range values {
			counts[author]++
		}
	}
	authors := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), strings.Compare(x, y))
	})
	authors = authors[:min(len(authors), agreeingMax)]
	slices.Sort(authors)

	for i, author := range authors {
		for _, other := range authors[i+1:] {
			if pair := a.compare(author, other); pair.Both > 0 {
				w.Pairs = append(w.Pairs, pair)
			}
		}
	}

	return w
}

// compare compares two authors. Kappa is how much more often they agree than by chance, as a share of
// what is possible (Cohen, A coefficient of agreement for nominal scales, 1960). By chance, each gives
// every value as often as it does, whatever the target.
func (a *Agreement) compare(author, other string) wire.AuthorPair {
	var both, equal, chance int64
	ofAuthor, ofOther := map[wire.ScoreValue]int64{}, map[wire.ScoreValue]int64{}
	for _, values := range a.targets {
		x, scored := values[author]
		y, too := values[other]
		if !scored || !too {
			continue
		}
		both++
		if x == y {
			equal++
		}
		ofAuthor[x]++
		ofOther[y]++
	}

	w := wire.AuthorPair{A: author, B: other, Both: both, Equal: float64(equal) / float64(max(both, 1))}
	// As integers, the shares times the square of both: so the order of values does not matter.
	for value, n := range ofAuthor {
		chance += n * ofOther[value]
	}
	if possible := both*both - chance; possible > 0 && a.of.Kind != "number" {
		kappa := float64(both*equal-chance) / float64(possible)
		w.Kappa = &kappa
	}

	return w
}
