package overview

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// grouping is something by whose values calls are grouped.
type grouping struct {
	Name, Title string // as the address has it, and as the page shows it
	by          string // as wire.PartsQuery has it
}

// groupings are those of all calls; keys of the metadata follow. The first one is shown unless the address has
// another one.
var groupings = []grouping{
	{"model", "model", "model"},
	{"template", "template", "template"},
	{"version", "version", "version"},
	{"user", "user", wire.ByMetadata + "user_id"},
	{"status", "status", "status"},
	{"provider", "provider", "provider"},
	{"tag", "tag", "tag"},
}

// groupingOf returns the grouping of a name in an address.
func groupingOf(name string) grouping {
	if key, ok := strings.CutPrefix(name, wire.ByMetadata); ok && key != "" {
		return grouping{name, key, name}
	}
	for _, g := range groupings {
		if g.Name == name {
			return g
		}
	}

	return groupings[0]
}

// terms returns the conditions that calls with a value meet: two for a version, otherwise one.
func (g grouping) terms(v *wire.ValueTotals) []filterline.Term {
	field, key := g.Name, ""
	if k, ok := strings.CutPrefix(g.Name, wire.ByMetadata); ok {
		field, key = "metadata", k
	}
	if g.Name == "version" {
		version := filterline.Absent("version")
		if v.Version != nil {
			version = filterline.Where("version", "", strconv.Itoa(*v.Version))
		}
		return []filterline.Term{filterline.Where("template", "", v.Value), version}
	}

	term := filterline.Where(field, key, v.Value)
	switch {
	case v.Truncated:
		// Only the beginning of a long value is known.
		term = filterline.Where(field, key, strings.TrimSuffix(v.Value, "…")).With(filterline.Begins)
	case v.Value == "" && key == "":
		term = filterline.Absent(field)
	}

	return []filterline.Term{term}
}

// name returns a value as the page shows it.
func (g grouping) name(v *wire.ValueTotals) string {
	switch {
	case v.Value == "":
		return "none"
	case g.Name != "version":
		return v.Value
	case v.Version == nil:
		return v.Value + "@?"
	}

	return v.Value + "@" + strconv.Itoa(*v.Version)
}

// isApart reports whether no call has two of the values, so that they add up to all calls.
func (g grouping) isApart() bool { return g.Name != "tag" }

// axis is the intervals of charts, without values.
type axis struct {
	*chart.Chart
	at map[string]int // the point of a date
}

// bucketOf returns the length of the intervals of a series.
func bucketOf(i wire.ChartInterval) time.Duration {
	return time.Duration(i.BucketSizeMS) * time.Millisecond
}

// axis returns the intervals from the beginning of the page's time until its end, or those of a series if
// there are too many.
func (q overviewQuery) axis(interval wire.ChartInterval, series []wire.BucketTotals) axis {
	bucket := bucketOf(interval)
	a := axis{&chart.Chart{Bucket: bucket}, map[string]int{}}
	a.Zoom = q.filter.Zoom(func(f filter.Filter) string { return f.Page("/") })
	a.Edges = func(p chart.Point) (string, string) { return q.filter.Edges(p.At, p.To, bucket >= 24*time.Hour) }
	a.Link = func(p chart.Point) string { return q.filter.Between(p.At, p.To).Requests() }
	if len(series) == 0 {
		return a
	}

	var own []chart.Point
	for _, b := range series {
		from, to := q.filter.Bucket(b.Date, bucket)
		own = append(own, chart.Point{At: from, To: to})
	}
	from, to := q.span()
	if from.IsZero() {
		from, to = own[0].At, own[len(own)-1].To
	}
	edges := q.filter.Intervals(from, to, bucket, crowdedMin)
	for i := 1; i < len(edges); i++ {
		a.Points = append(a.Points, chart.Point{At: edges[i-1], To: edges[i]})
	}
	if edges == nil {
		a.Points = own
	}

	for i, b := range series {
		a.at[b.Date] = slices.IndexFunc(a.Points, func(p chart.Point) bool { return p.At.Equal(own[i].At) })
		if a.at[b.Date] < 0 {
			// A call that is ahead of our clock.
			a.Points = append(a.Points, own[i])
			a.at[b.Date] = len(a.Points) - 1
		}
	}

	return a
}

// groupsView is the chart of a metric by the groups of calls, and the table of these.
type groupsView struct {
	Metric    metric
	Metrics   []metric
	Grouping  grouping
	Groupings []grouping
	Chart     *chart.Chart
	Counted   frame.Counted
	Order     table.Order
	Column    string // what the table has besides requests, errors and cost
	Rows      []groupRow
}

// groupRow is a group in the table.
type groupRow struct {
	wire.Totals
	Name, Href string // Href is "" for the values that are not listed, and calls without a value
	Class      string // the CSS class of its colour in the chart, or ""
	Value      string // of the metric, if it is none of the columns
	value      float64
}

// groupRowsMax bounds the table: it is an overview.
const groupRowsMax = 20

// groupColumns are what the table can be sorted by.
var groupColumns = table.Columns[groupRow]{
	"requests": func(r *groupRow) float64 { return float64(r.Requests) },
	"errors":   func(r *groupRow) float64 { return r.ErrorRate },
	"cost":     func(r *groupRow) float64 { return r.Cost },
	"value":    func(r *groupRow) float64 { return r.value },
}

// shown returns the metric of the chart.
func (q overviewQuery) shown(a *wire.Analytics) metric {
	for _, m := range metricsOf(a) {
		if m.Name == q.metric {
			return m
		}
	}

	return metrics[0]
}

// address returns the page with another metric or group.
func (q overviewQuery) address(metric, group string) string {
	f := q.filter
	f.Kept = q.kept(metric, group)

	return f.Page("/")
}

// showGroups fills in the chart of a metric by groups, and their table.
func (v *overviewView) showGroups(q overviewQuery, a *wire.Analytics, parts *wire.Statistics) {
	g := &v.Groups
	g.Metric, g.Metrics, g.Grouping = q.shown(a), metricsOf(a), groupingOf(q.group)
	g.Groupings = groupings[:len(groupings):len(groupings)]
	for _, key := range a.MetadataKeysTop {
		// "user" is the same.
		if key.Key != "user_id" {
			g.Groupings = append(g.Groupings, groupingOf(wire.ByMetadata+key.Key))
		}
	}
	if !slices.Contains(g.Groupings, g.Grouping) {
		g.Groupings = append(g.Groupings, g.Grouping)
	}

	drawn := slices.DeleteFunc(slices.Clone(parts.Items), func(t wire.ValueTotals) bool { return !g.Metric.draws(&t) })
	g.Chart = q.draw(g.Grouping, g.Metric, drawn, parts)
	q.list(g, parts)
}

// draw returns the chart of some groups, and of what is beside them: the other calls where groups
// add up to all, otherwise all calls.
func (q overviewQuery) draw(g grouping, m metric, drawn []wire.ValueTotals, parts *wire.Statistics) *chart.Chart {
	of := q.filter
	if m.Name == "errors" {
		of = of.With(success.Negated())
	}
	requests := func(f filter.Filter) string { return f.Requests() }
	var names, lists []string
	classes := map[int]string{}
	for i := range drawn {
		names = append(names, g.name(&drawn[i]))
		lists = append(lists, of.With(g.terms(&drawn[i])...).Zoom(requests))
		if g.Name == "status" && drawn[i].Value == "ERROR" {
			classes[i] = "c-bad"
		}
	}

	a, rest := q.axis(parts.ChartInterval, parts.All.Series), len(drawn)
	switch {
	case !m.adds:
		names, lists, classes[rest] = append(names, "all"), append(lists, of.Zoom(requests)), "c-all"
	case g.isApart() && beside(m, &parts.All.Totals, drawn) > 0:
		names, lists, classes[rest] = append(names, "others"), append(lists, ""), "c-rest"
	}
	c := m.chart(a, names)
	c.Title, c.Classes, c.Lists = m.Title+" by "+g.Title, classes, lists
	c.Zoom, c.Edges, c.Link = a.Zoom, a.Edges, func(p chart.Point) string { return of.Between(p.At, p.To).Requests() }
	for i := range drawn {
		for _, b := range drawn[i].Series {
			c.Points[a.at[b.Date]].Values[i] = m.value(&b.Totals)
		}
	}
	if len(names) > rest {
		for _, b := range parts.All.Series {
			values := c.Points[a.at[b.Date]].Values
			values[rest] = m.value(&b.Totals)
			for i := 0; m.adds && i < rest; i++ {
				values[rest] = max(values[rest]-values[i], 0)
			}
		}
	}
	// Where groups are few, each part of a bar leads to its calls: with many the page would grow large.
	if m.adds && len(names) <= 3 {
		c.LinkValue = func(p chart.Point, i int) string {
			if i == 0 || i >= rest {
				return ""
			}
			return of.With(g.terms(&drawn[i])...).Between(p.At, p.To).Requests()
		}
	}

	return c
}

// draws reports whether the chart of the metric has a group: one with a series, in which the metric is known.
func (m metric) draws(group *wire.ValueTotals) bool {
	return len(group.Series) > 0 && !math.IsNaN(m.value(&group.Totals))
}

// beside returns how much of all calls is not of some groups.
func beside(m metric, all *wire.Totals, groups []wire.ValueTotals) float64 {
	left := m.value(all)
	for i := range groups {
		left -= m.value(&groups[i].Totals)
	}
	// The sum of costs may differ by the last digit.
	if left < 1e-9 {
		return 0
	}

	return left
}

// list fills in the table of groups.
func (q overviewQuery) list(v *groupsView, parts *wire.Statistics) {
	column := v.Metric
	if slices.Contains([]string{"requests", "errors", "cost"}, column.Name) {
		column = metrics[len(metrics)-1]
	}
	v.Column = column.Title

	drawn := 0
	listed := parts.Items[:min(len(parts.Items), groupRowsMax)]
	for i := range listed {
		item := &listed[i]
		row := groupRow{Totals: item.Totals, Name: v.Grouping.name(item), value: column.value(&item.Totals)}
		_, row.Value = column.figure(&item.Totals)
		row.Href = q.filter.With(v.Grouping.terms(item)...).Requests()
		// The chart has them in the same order.
		if v.Metric.draws(item) {
			row.Class = v.Chart.Class(drawn)
			drawn++
		}
		v.Rows = append(v.Rows, row)
	}
	v.Order = table.Read("/", q.URL.Query())
	table.Sort(v.Order, v.Rows, groupColumns)

	if all := &parts.All.Totals; v.Grouping.isApart() && beside(metrics[0], all, listed) > 0 {
		rest := groupRow{Name: "others", Value: "–"}
		rest.Requests = int64(beside(metrics[0], all, listed))
		rest.Errors = int64(beside(metrics[1], all, listed))
		rest.ErrorRate = float64(rest.Errors) / float64(rest.Requests)
		rest.Cost = beside(metrics[2], all, listed)
		v.Rows = append(v.Rows, rest)
	}
}
