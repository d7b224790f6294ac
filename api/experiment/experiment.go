// Package experiment pairs and compares the calls of experiments: what versions of a template answered to
// the same rows.
//
// An experiment is its calls, and is stored nowhere else. Their metadata names the experiment and the row.
package experiment

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"promptspool/api/significance"
	"promptspool/api/wire"
)

// The metadata of a call of an experiment.
const (
	NameKey = "experiment"
	RowKey  = "row"
)

// Calls are the calls of one version in an experiment, by their rows.
type Calls map[string]*wire.Row

// callsMax bounds the calls of an experiment that are looked at: twice what a run makes.
const callsMax = 40_000

// Load finds the newest calls of an experiment by version, with one search for each thousand of them. If a
// template is named, others' calls do not count. Of several calls for a row, the newest that succeeded counts.
func Load(
	ctx context.Context, search func(context.Context, wire.Search) (wire.SearchPage, error), name, template string,
) (map[int]Calls, error) {
	ofName := wire.Where("metadata", "is", name)
	ofName.NestedKey = NameKey
	all := map[int]Calls{}
	next := wire.Search{FilterGroup: &ofName, PerPage: wire.PageItemsMax}
	for range callsMax / wire.PageItemsMax {
		page, err := search(ctx, next)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if template == "" || template == wire.OrZero(page.Items[i].PromptName) {
				add(all, &page.Items[i])
			}
		}
		if page.NextCursor == nil {
			break
		}
		next.Cursor = *page.NextCursor
	}

	return all, nil
}

func add(all map[int]Calls, call *wire.Row) {
	at := slices.IndexFunc(call.Metadata, func(m wire.MetadataRow) bool { return m.Key == RowKey })
	if at < 0 || call.PromptVersion == nil {
		return
	}
	row, version := call.Metadata[at].Value, int(*call.PromptVersion)
	if all[version] == nil {
		all[version] = Calls{}
	}

	// The newest come first.
	if before := all[version][row]; before == nil || Failed(before) && !Failed(call) {
		all[version][row] = call
	}
}

// Failed reports whether a call got no answer.
func Failed(call *wire.Row) bool { return call.Status == "ERROR" }

// Measured are the metrics that every call has. A score of such a name is not looked at. An error counts 1,
// costs are in US dollars, latencies in seconds.
var Measured = []string{"errors", "cost", "latency"}

// Value returns a metric of a call, if it has it: one of Measured, or a mean score. Categories do not
// count.
func Value(call *wire.Row, metric string) (v float64, known bool) {
	if call == nil {
		return 0, false
	}
	switch metric {
	case "errors":
		if Failed(call) {
			v = 1
		}
		return v, true
	case "cost":
		return wire.OrZero(call.Price), call.Price != nil
	case "latency":
		return wire.OrZero(call.Latency), call.Latency != nil
	}

	count := 0.0
	for _, s := range call.Scores {
		if s.Name == metric && s.Kind < wire.ScoreCategory {
			v += s.Number
			count++
		}
	}

	return v / max(1, count), count > 0
}

// Pair is what two versions answered to one row. One of the calls may be missing.
type Pair struct {
	Row        string
	A, B       *wire.Row
	Regression float64 // how much worse B is, in standard deviations of each score together
}

// Comparison is how the calls of a version differ from those of another.
type Comparison struct {
	Metrics []wire.ComparedMetric // scores by their names, then errors, cost and latency
	Pairs   []Pair                // the worst regressions first
}

// Compare compares the calls of two versions, row by row. Without calls of a, those of b are summed up.
func Compare(a, b Calls, defined wire.ScoreDefinitions) (c Comparison) {
	rows := maps.Clone(b)
	maps.Copy(rows, a)
	for row := range rows {
		c.Pairs = append(c.Pairs, Pair{Row: row, A: a[row], B: b[row]})
	}
	slices.SortFunc(c.Pairs, func(x, y Pair) int { return cmp.Compare(x.Row, y.Row) })

	var differences []*significance.Comparison
	for _, name := range c.scoreNames() {
		better := "higher"
		if d := defined.Of(name); d != nil {
			better = d.Better
		}
		differences = append(differences, c.compare(wire.ComparedMetric{Metric: "score", Name: name, Better: better}))
	}
	for _, metric := range Measured {
		differences = append(differences, c.compare(wire.ComparedMetric{Metric: metric, Better: "lower"}))
	}
	significance.Judge(differences)
	for i, d := range differences {
		if m := &c.Metrics[i]; m.CountA > 0 {
			m.Verdict, m.Needed = d.Word(m.Better), int64(d.Needed)
			if d.Enough {
				m.Low, m.High = &d.Low, &d.High
			}
		}
	}
	slices.SortStableFunc(c.Pairs, func(x, y Pair) int { return cmp.Compare(y.Regression, x.Regression) })

	return c
}

// scoreNames returns the names of the scores, sorted.
func (c *Comparison) scoreNames() []string {
	names := map[string]bool{}
	for _, p := range c.Pairs {
		for _, call := range []*wire.Row{p.A, p.B} {
			for _, s := range wire.OrZero(call).Scores {
				if s.Kind < wire.ScoreCategory && !slices.Contains(Measured, s.Name) {
					names[s.Name] = true
				}
			}
		}
	}

	return slices.Sorted(maps.Keys(names))
}

// compare adds a metric, and what B is worse by in it to the regressions of the pairs.
func (c *Comparison) compare(m wire.ComparedMetric) *significance.Comparison {
	metric := cmp.Or(m.Name, m.Metric)
	var both [][2]float64
	var places []int
	var alone float64
	shares := m.Metric != "cost" && m.Metric != "latency"
	for i, p := range c.Pairs {
		vA, knownA := Value(p.A, metric)
		vB, knownB := Value(p.B, metric)
		if knownB {
			m.CountB++
			alone += vB
		}
		if knownA && knownB {
			both, places = append(both, [2]float64{vA, vB}), append(places, i)
		}
		shares = shares && (vA == 0 || vA == 1) && (vB == 0 || vB == 1)
	}

	d := significance.PairedMeans(both)
	m.Method = wire.MethodPairedMeans
	if shares {
		d, m.Method = significance.PairedShares(both), wire.MethodPairedShares
	}
	if len(both) > 0 {
		m.CountA, m.CountB, m.A, m.B, m.Difference = int64(len(both)), int64(len(both)), d.Of[0], d.Of[1], d.Difference
	} else {
		m.B = alone / float64(max(1, m.CountB))
	}
	c.Metrics = append(c.Metrics, m)
	c.regress(m, both, places)

	return &d
}

// failure is the regression of a row to which only B has no answer: more than that of any score.
const failure = 1000

// regress adds a metric to the regressions of the pairs at some places.
func (c *Comparison) regress(m wire.ComparedMetric, values [][2]float64, places []int) {
	weight := 0.0
	switch {
	case m.Metric == "errors":
		weight = failure
	case m.Metric == "score" && m.Better != "":
		for _, v := range values {
			weight += (v[1] - v[0]) * (v[1] - v[0]) / float64(len(values))
		}
		weight = 1 / math.Sqrt(cmp.Or(weight, 1))
	}
	if m.Better == "higher" {
		weight = -weight
	}
	for i, v := range values {
		c.Pairs[places[i]].Regression += weight * (v[1] - v[0])
	}
}
