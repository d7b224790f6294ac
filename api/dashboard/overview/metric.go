package overview

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/wire"
)

// metric is a number of calls that the first page shows over time.
type metric struct {
	Name  string // as the address has it
	Title string
	value func(t *wire.Totals) float64 // in a chart; NaN if it is unknown
	print func(v float64) string

	adds  bool                         // the values of groups add up to that of all, and are drawn as bars
	time  bool                         // values are seconds
	class string                       // of its colour; "" for that of the first series
	share func(t *wire.Totals) float64 // what its tile has in place of the value; nil for that

	score  string // the name of the score that it is of, or ""
	shares bool   // values are percent
}

// metrics are those of all calls; scores follow.
var metrics = []metric{
	{Name: "requests", Title: "Requests", adds: true, print: number.Count,
		value: func(t *wire.Totals) float64 { return float64(t.Requests) }},
	{Name: "errors", Title: "Errors", adds: true, print: number.Count, class: "c-bad",
		value: func(t *wire.Totals) float64 { return float64(t.Errors) },
		share: func(t *wire.Totals) float64 { return t.ErrorRate }},
	{Name: "cost", Title: "Cost", adds: true, print: number.Dollars,
		value: func(t *wire.Totals) float64 { return t.Cost }},
	{Name: "tokens", Title: "Tokens", adds: true, print: number.Count,
		value: func(t *wire.Totals) float64 { return float64(t.Tokens()) }},
	{Name: "p50", Title: "Latency p50", time: true, print: number.Seconds,
		value: func(t *wire.Totals) float64 { return table.OrNaN(t.Latency.P50) }},
	{Name: "p95", Title: "Latency p95", time: true, print: number.Seconds,
		value: func(t *wire.Totals) float64 { return table.OrNaN(t.Latency.P95) }},
}

// scorePrefix is in front of the name of a score, as the address has it as a metric.
const scorePrefix = "score."

// scoreMetric returns the metric of the mean of a score, or of its most frequent category's share.
func scoreMetric(s wire.ScoreSum) metric {
	m := metric{Name: scorePrefix + s.Name, Title: s.Name, score: s.Name, print: printScore}
	category := s.MostFrequent()
	if s.Kind != "number" {
		m.print = func(v float64) string { return fmt.Sprintf("%.0f %%", v) }
		m.shares = true
	}
	if category != "" {
		m.Title += " " + category
	}
	m.value = func(t *wire.Totals) float64 {
		if sum := wire.SumOf(t.Scores, s.Name); sum != nil {
			return sum.Charted(category)
		}
		return math.NaN()
	}

	return m
}

// printScore prints a mean with as many digits as people compare.
func printScore(v float64) string {
	if math.Abs(v) < 1000 {
		return fmt.Sprintf("%.3g", v)
	}

	return number.Count(v)
}

// figure returns what a tile shows, and how it is printed.
func (m metric) figure(t *wire.Totals) (v float64, text string) {
	v, text = m.value(t), "–"
	if m.share != nil {
		v = m.share(t)
		return 100 * v, number.Percent(v)
	}
	if !math.IsNaN(v) {
		text = m.print(v)
	}
	if sum := wire.SumOf(t.Scores, m.score); sum != nil && sum.Kind == "boolean" {
		text = sum.String()
	}

	return v, text
}

// rankOf returns by what the groups of a metric are ordered: by their part of the sum, or by requests.
func rankOf(name string) func(t *wire.Totals) float64 {
	for _, m := range metrics {
		if m.Name == name && m.adds {
			return m.value
		}
	}

	return nil
}

// change returns how a metric has changed since the period before; "" if one of the two is unknown.
func (m metric) change(now, before *wire.Totals) string {
	v, _ := m.figure(now)
	was, text := m.figure(before)
	if math.IsNaN(v) || math.IsNaN(was) {
		return ""
	}

	difference := v - was
	size := m.print(math.Abs(difference))
	switch {
	case m.share != nil || m.shares:
		size = fmt.Sprintf("%.1f pt", math.Abs(difference))
	case m.score == "" && was == 0:
		return "from " + text
	case m.score == "" && v > 10*was:
		return fmt.Sprintf("×%.0f from %s", v/was, text)
	case m.score == "":
		size = fmt.Sprintf("%.0f %%", 100*math.Abs(difference)/was)
	}

	sign := "+"
	if difference < 0 {
		sign = "−"
	}
	if !strings.ContainsAny(size, "123456789") {
		return "as before"
	}

	return sign + size + " from " + text
}

// tile is a metric of all calls. It leads to the chart of the metric.
type tile struct {
	metric
	Href    string
	Current bool
	Figure  string
	Change  string // since the period before, or ""
	Spark   *chart.Chart

	Note, NoteHref string // what else it says, and the address of the calls that this is of, or ""
	Detail         string // of the figure, for a mouse that rests on it
}

// tileScoresMax bounds the scores with a tile. The others are metrics as well.
const tileScoresMax = 6

// chart returns an empty chart of a metric with the intervals of an axis.
func (m metric) chart(a axis, names []string) *chart.Chart {
	c := &chart.Chart{Title: m.Title, Names: names, Format: m.print, Bars: m.adds, Time: m.time, Bucket: a.Bucket}
	missing := math.NaN()
	if m.adds {
		missing = 0
	}
	for _, p := range a.Points {
		p.Values = slices.Repeat([]float64{missing}, len(names))
		c.Points = append(c.Points, p)
	}

	return c
}

// metricsOf returns the metrics of what was found.
func metricsOf(a *wire.Analytics) []metric {
	all := metrics[:len(metrics):len(metrics)]
	for _, name := range wire.ScoreNames(a.Scores) {
		all = append(all, scoreMetric(*wire.SumOf(a.Scores, name)))
	}

	return all
}

// showTiles fills in the tiles, and the table of what their lines show.
func (v *overviewView) showTiles(q overviewQuery, a, before *wire.Analytics) {
	all := metricsOf(a)
	all = all[:min(len(all), len(metrics)+tileScoresMax)]
	series, shown := a.Series(), q.shown(a)
	v.Axis = q.axis(a.ChartInterval, series)
	v.Cells = make([][]timeCell, len(v.Axis.Points))
	failed := q.filter.With(success.Negated())

	for _, m := range all {
		t := tile{metric: m, Href: q.address(m.Name, q.group), Current: m.Name == shown.Name}
		_, t.Figure = m.figure(&a.Overall)
		if before.TotalRequests > 0 {
			t.Change = m.change(&a.Overall, &before.Overall)
		}
		t.describe(&a.Overall, v.Counted, failed)

		t.Spark = m.chart(v.Axis, []string{m.Title})
		t.Spark.Classes = map[int]string{0: m.class}
		for i, b := range series {
			t.Spark.Points[v.Axis.at[b.Date]].Values[0] = m.value(&series[i].Totals)
		}
		for i, p := range t.Spark.Points {
			cell := timeCell{Text: t.Spark.Value(p.Values[0])}
			if m.share != nil && p.Values[0] > 0 {
				cell.Href = failed.Between(p.At, p.To).Requests()
			}
			v.Cells[i] = append(v.Cells[i], cell)
		}
		v.Tiles = append(v.Tiles, t)
	}
}

// describe says what a tile's figure is of, or leaves out.
func (t *tile) describe(all *wire.Totals, counted frame.Counted, failed filter.Filter) {
	switch {
	case t.score != "":
		t.Note = number.Quantity(wire.SumOf(all.Scores, t.score).Count, "score")
	case t.Name == "errors":
		t.Note = counted.Count(all.Errors) + " failed"
		if all.Errors > 0 {
			t.NoteHref = failed.Requests()
		}
	case t.Name == "cost" && all.Unpriced > 0:
		t.Note = counted.Count(all.Unpriced) + " unpriced"
	case t.Name == "tokens":
		t.Detail = counted.Brief(all.InputTokens) + " in, " + counted.Brief(all.OutputTokens) + " out"
	}
	if t.adds && t.share == nil {
		t.Figure += counted.Mark()
	}
}

// timeCell is what a metric was in an interval.
type timeCell struct{ Text, Href string }
