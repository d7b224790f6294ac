package query

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unique"

	"promptspool/api/significance"
	"promptspool/api/wire"
	"promptspool/api/wire/calendar"
	"promptspool/spool/archive/rowcode"
)

// Comparison compares the rows of two versions of a template: those of when both ran.
type Comparison struct {
	most    int64 // rows of each version, since both were seen
	zone    *time.Location
	calls   [2]wire.ComparedCalls
	judged  []judged // of the row added last; its memory is used again
	defined wire.ScoreDefinitions

	// The newest first.
	errors, costs, tokens, latencies []significance.Value
	scores                           map[scoreKey]*[]significance.Value

	differences []*significance.Comparison
	metrics     []wire.ComparedMetric
}

// ComparisonColumns are the columns that Comparison looks at.
var ComparisonColumns = tallyColumns | rowcode.ColumnsOf(rowcode.ColumnTime, rowcode.ColumnVersion)

// NewComparison returns the comparison that q asks for, of no rows yet. Of the rows since both versions
// were seen, it will take the first most of each version. Days are those of a time zone, or of UTC.
func NewComparison(q wire.PartsQuery, most int64) *Comparison {
	days, known := calendar.ParseZone(q.Zone)
	if !known {
		days = time.UTC
	}
	c := &Comparison{most: most, zone: days, scores: make(map[scoreKey]*[]significance.Value), defined: q.Definitions}
	c.calls[0].Version, c.calls[1].Version = q.Compare[0], q.Compare[1]

	return c
}

// Add counts a row of one of the versions, and reports whether it takes more. Rows come newest first.
func (c *Comparison) Add(row *wire.Row) (more bool) {
	v := significance.Value{At: row.ListTime.UnixNano()}
	if *row.PromptVersion == int64(c.calls[1].Version) {
		v.Sample = 1
	}
	calls, other := &c.calls[v.Sample], &c.calls[1-v.Sample]
	// The other ran alone until now. It may have as many calls of when both ran.
	if calls.Since.IsZero() {
		other.Requests, other.Incomplete = 0, false
	}
	if calls.Requests == c.most {
		calls.Incomplete = true
		return !other.Incomplete
	}

	calls.Requests++
	calls.Since = row.ListTime
	if row.Status != "SUCCESS" {
		v.X = 1
	}
	c.errors = append(c.errors, v)
	if row.Price != nil {
		v.X = *row.Price
		c.costs = append(c.costs, v)
	}
	if row.InputTokens != nil || row.OutputTokens != nil {
		v.X = float64(plus(wire.OrZero(row.InputTokens), wire.OrZero(row.OutputTokens)))
		c.tokens = append(c.tokens, v)
	}
	if row.Latency != nil {
		// As exact as in statistics, so that percentiles of the same calls are equal.
		v.X = latencyOf(classOf(time.Duration(math.Round(*row.Latency * 1e9))))
		c.latencies = append(c.latencies, v)
	}
	c.judged = judge(c.judged[:0], row.Scores)
	for _, j := range c.judged {
		c.addScore(v, j)
	}

	return true
}

// addScore counts how a call was judged, of whose version and time v is. Categories are not compared.
func (c *Comparison) addScore(v significance.Value, j judged) {
	v.X = j.exact.float()
	// Its authors together have to fit, as in statistics.
	fits := c.defined.Of(j.name).Fits(wire.ScoreValue{Kind: j.kind, Number: v.X})
	if j.kind == wire.ScoreCategory || !fits {
		return
	}
	// An integer is a number.
	key := scoreKey{j.name, max(j.kind, wire.ScoreNumber)}
	if c.scores[key] == nil && len(c.scores) < scoreNamesMax {
		key.name = strings.Clone(key.name)
		c.scores[key] = new([]significance.Value)
	}
	if s := c.scores[key]; s != nil {
		*s = append(*s, v)
	}
}

// compareScores compares the scores with the most values. If a name has numbers and booleans, those
// that are more count.
func (c *Comparison) compareScores() {
	keys := slices.SortedFunc(maps.Keys(c.scores), func(x, y scoreKey) int {
		return cmp.Or(cmp.Compare(len(*c.scores[y]), len(*c.scores[x])),
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
		if key.kind == wire.ScoreBoolean {
			c.compare("score", key.name, "newcombe", better, significance.Shares(*c.scores[key]))
		} else {
			c.compare("score", key.name, "welch", better, significance.Means(*c.scores[key]))
		}
	}
}

// Answer returns the comparison in the form of the API. It is called once; late means that there may be
// more rows.
func (c *Comparison) Answer(late bool) wire.VersionComparison {
	for i := range c.calls {
		c.calls[i].Incomplete = c.calls[i].Incomplete || late
		if !c.calls[i].Incomplete {
			c.calls[i].Progress = wire.Progress{}
		}
	}
	note := c.runs()
	together, how := c.keepTogether()

	c.compareScores()
	errors := significance.Shares(c.errors)
	c.compare("errors", "", "newcombe", "lower", errors)
	c.compare("cost", "", "welch", "lower", significance.Means(c.costs))
	c.compare("latency_p50", "", "bootstrap", "lower", significance.Quantiles(0.5, c.latencies))
	c.compare("latency_p95", "", "bootstrap", "lower", significance.Quantiles(0.95, c.latencies))
	c.compare("tokens", "", "welch", "", significance.Means(c.tokens))

	least := min(errors.Counts[0], errors.Counts[1])
	if least > 0 {
		note += how
	}
	significance.Judge(c.differences)
	for i, d := range c.differences {
		m := &c.metrics[i]
		if judged := together || least < wire.TogetherMin && !d.Enough; !judged {
			continue
		}
		m.Verdict, m.Needed = d.Word(m.Better), int64(d.Needed)
		if d.Enough {
			m.Difference, m.Low, m.High = d.Difference, &d.Low, &d.High
		}
	}

	c.calls[0].Requests, c.calls[1].Requests = int64(errors.Counts[0]), int64(errors.Counts[1])

	return wire.VersionComparison{
		A: c.calls[0], B: c.calls[1], Metrics: c.metrics, Together: together, Note: note,
	}
}

// runs returns when each version ran, and whether most of its errors are of one day.
func (c *Comparison) runs() (note string) {
	for i, calls := range c.calls {
		var first, last string
		errors, errorDays := 0, make(map[string]int)
		for _, v := range c.errors {
			if v.Sample == i {
				first = time.Unix(0, v.At).In(c.zone).Format("Jan 2")
				last = cmp.Or(last, first)
				errors += int(v.X)
				errorDays[first] += int(v.X)
			}
		}

		switch {
		case last == "":
			continue
		case calls.Incomplete:
			note += fmt.Sprintf("Version %d ran until %s. ", calls.Version, last)
		case first == last:
			note += fmt.Sprintf("Version %d ran on %s. ", calls.Version, last)
		default:
			note += fmt.Sprintf("Version %d ran from %s to %s. ", calls.Version, first, last)
		}
		for day, n := range errorDays {
			if n > 1 && 2*n > errors && first != last {
				note += fmt.Sprintf("%d of its %d errors are from %s. ", n, errors, day)
			}
		}
	}

	return note
}

// keepTogether keeps the values of when both versions ran if there are enough calls, and returns that in words.
func (c *Comparison) keepTogether() (together bool, note string) {
	var calls [2]int
	times := make(map[int64]bool)
	for _, v := range significance.Together(c.errors) {
		calls[v.Sample]++
		times[v.At] = true
	}
	switch {
	case len(times) == 0:
		return false, "They never ran side by side; to know, give part of the traffic the new label."
	case min(calls[0], calls[1]) < wire.TogetherMin:
		return false, "They hardly ran side by side; to know, give part of the traffic the new label."
	}

	for _, values := range append(slices.Collect(maps.Values(c.scores)), &c.errors, &c.costs, &c.tokens, &c.latencies) {
		*values = slices.DeleteFunc(*values, func(v significance.Value) bool { return !times[v.At] })
	}

	return true, "Compared are the calls while both ran, hour by hour."
}

func (c *Comparison) compare(metric, name, method, better string, d significance.Comparison) {
	m := wire.ComparedMetric{
		Metric: metric, Name: name, Method: method, Better: better,
		CountA: int64(d.Counts[0]), CountB: int64(d.Counts[1]), A: d.Of[0], B: d.Of[1],
	}
	switch both := m.CountA > 0 && m.CountB > 0; {
	case both:
		m.Difference = m.B - m.A
	case method != "welch": // of a version alone, only means are given
		m.A, m.B = 0, 0
	}
	c.differences, c.metrics = append(c.differences, &d), append(c.metrics, m)
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
			// An integer says the same as an equal number.
			s.Kind = wire.ScoreNumber
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
	w.Incomplete = w.Incomplete || late
	if !w.Incomplete {
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
