package templates

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// statisticsView is what the comparison of a template's versions by their numbers shows.
type statisticsView struct {
	templateHead
	Span       string
	Times      []filter.TimeChoice
	Score      string   // the score whose means are shown
	Scores     []string // the names to choose from
	Bucket     string
	Buckets    []string
	Order      table.Order
	Rows       []statisticsRow
	Charts     []*chart.Chart
	ChartsLeft int // versions without a line, because there are too many
	Counted    frame.Counted
	Cut        int64       // requests of versions that are not listed
	Calls      *comparison // of the newest two versions that have requests; nil if there are none
}

// versionPointsMax bounds the points of a line. Each has its own link, in up to
// chart.LinesMax lines in each of the charts.
const versionPointsMax = 20

// statisticsRow is what is known of one version.
type statisticsRow struct {
	wire.ValueTotals
	Labels  []wire.Label
	Message string
	Href    string // the address of its requests
	Score   *wire.ScoreSum
	Mean    *float64 // the cost of 1,000 requests: that of one is too small to read
	Class   string   // the CSS class of its colour in the charts, or ""
}

func (p *pages) statisticsPage(c *frame.Exchange, head templateHead) error {
	q := c.URL.Query()
	v := statisticsView{
		templateHead: head,
		Span:         q.Get("span"),
		Times:        filter.Times,
		Score:        q.Get("score"),
		Bucket:       q.Get("bucket"),
		Buckets:      wire.Buckets,
	}

	f := c.Filter(nil).During(v.Span).With(filterline.Where("template", "", head.Name))
	group, err := f.Group()
	if err != nil {
		return err
	}
	query := c.Bounded(wire.StatisticsQuery{
		FilterGroup: group,
		FilterLine:  wire.FilterLine{Zone: f.Zone().String()},
		Bucket:      v.Bucket,
		PointsMax:   versionPointsMax,
	})
	answer, err := p.records.Statistics(c.Context(), c.Identity(), wire.PartsQuery{StatisticsQuery: query})
	if err != nil {
		return err
	}

	// Rows depend on the score that is shown.
	v.Counted, v.Cut = c.Counted("/template/statistics", answer.Progress), answer.LeftOut
	var sums []wire.ScoreSum
	for _, of := range answer.Items {
		sums = append(sums, of.Scores...)
	}
	v.Scores = wire.ScoreNames(sums)
	if !slices.Contains(v.Scores, v.Score) && len(v.Scores) > 0 {
		v.Score = v.Scores[0]
	}

	for _, t := range slices.Backward(answer.Items) {
		v.Rows = append(v.Rows, v.row(f, t))
	}
	v.Charts = v.charts(f, answer.ChartInterval)
	from, _ := f.Range()
	moved, err := p.templates.Moved(c.Context(), c.Identity(), from)
	if err != nil {
		return err
	}
	for _, drawn := range v.Charts {
		drawn.MarkMoves(moved, head.Name)
	}
	if newest := v.newestTwo(); newest != nil && v.Counted.Everything == "" {
		all := c.Filter(nil).During(v.Span)
		v.Calls, err = p.compareVersions(c, all, head.Name, newest[1], newest[0])
		if err != nil {
			return err
		}
	}
	v.Order = table.Read("/template/statistics", q)
	// The charts point to those in their order.
	v.Rows = slices.Clone(v.Rows)
	table.Sort(v.Order, v.Rows, versionColumns)

	return c.Show(http.StatusOK, "statistics", head.Name+" · Statistics", "templates", v)
}

// versionColumns are what the versions can be sorted by.
var versionColumns = table.Columns[statisticsRow]{
	"requests": func(r *statisticsRow) float64 { return float64(r.Requests) },
	"score": func(r *statisticsRow) float64 {
		if r.Score == nil {
			return math.NaN()
		}
		return r.Score.Charted(r.Score.MostFrequent())
	},
	"p50":    func(r *statisticsRow) float64 { return table.OrNaN(r.Latency.P50) },
	"p95":    func(r *statisticsRow) float64 { return table.OrNaN(r.Latency.P95) },
	"mean":   func(r *statisticsRow) float64 { return table.OrNaN(r.Mean) },
	"cost":   func(r *statisticsRow) float64 { return r.Cost },
	"errors": func(r *statisticsRow) float64 { return r.ErrorRate },
}

func (v *statisticsView) row(f filter.Filter, t wire.ValueTotals) statisticsRow {
	row := statisticsRow{
		ValueTotals: t,
		Href:        withVersion(f, t.Version).Requests(),
		Score:       wire.SumOf(t.Scores, v.Score),
	}
	if mean := meanCost(&t.Totals); !math.IsNaN(mean) {
		row.Mean = &mean
	}

	// Requests may name a version that does not exist, or none.
	if t.Version == nil || *t.Version < 1 || *t.Version > v.Latest() {
		return row
	}
	row.Message = v.Template.Versions[*t.Version-1].Message
	for _, l := range v.Labels {
		if l.Version == *t.Version {
			row.Labels = append(row.Labels, l)
		}
	}

	return row
}

// meanCost returns the mean cost of 1,000 requests, or NaN if no price is known.
func meanCost(t *wire.Totals) float64 {
	priced := t.Priced()
	if priced <= 0 {
		return math.NaN()
	}

	return 1000 * t.Cost / float64(priced)
}

// withVersion returns the filter for the requests of one version, or for those that name
// none.
func withVersion(f filter.Filter, version *int) filter.Filter {
	if version == nil {
		return f.With(filterline.Absent("version"))
	}

	return f.With(filterline.Where("version", "", strconv.Itoa(*version)))
}

// newestTwo returns the newest two versions that have requests, the newest first, or nil.
func (v *statisticsView) newestTwo() []int {
	var numbers []int
	for _, r := range v.Rows {
		if r.Version != nil {
			numbers = append(numbers, *r.Version)
		}
	}
	if len(numbers) < 2 {
		return nil
	}

	return numbers[:2]
}

// charts draws a line for each of the newest versions that have requests.
func (v *statisticsView) charts(f filter.Filter, interval wire.ChartInterval) []*chart.Chart {
	lines := v.chartLines()
	if len(lines) == 0 {
		return nil
	}

	drawing := versionDrawing{
		filter: f,
		bucket: time.Duration(interval.BucketSizeMS) * time.Millisecond,
		lines:  lines,
	}
	var all []*chart.Chart
	if v.Score != "" {
		title, category := "Score "+v.Score+", mean", ""
		// That of the newest version comes last.
		for _, r := range slices.Backward(v.Rows) {
			if r.Score == nil || r.Score.Count == 0 || r.Score.Kind == "number" {
				continue
			}
			category = r.Score.MostFrequent()
			title = "Score " + v.Score + ", % " + cmp.Or(category, "true")
		}
		all = append(all, drawing.chart(title, number.Count, func(t *wire.Totals) float64 {
			if s := wire.SumOf(t.Scores, v.Score); s != nil {
				return s.Charted(category)
			}
			return math.NaN()
		}))
	}

	latency := drawing.chart("Latency, p50", number.Seconds, func(t *wire.Totals) float64 {
		return table.OrNaN(t.Latency.P50)
	})
	latency.Time = true
	cost := drawing.chart("Cost per 1,000 calls", number.Dollars, meanCost)
	requests := drawing.chart("Requests", number.Count, func(t *wire.Totals) float64 {
		return float64(t.Requests)
	})
	requests.Bars = true

	all = append(all, latency, cost, requests)
	// Two stand side by side, so one more leaves no gap.
	if len(all)%2 == 1 {
		all = append(all, drawing.chart("Error rate", number.Percent, func(t *wire.Totals) float64 {
			return t.ErrorRate
		}))
	}
	chart.KeepFirstLinks(all)

	return all
}

// chartLines returns the rows that get a line, and gives each its colour. The oldest comes
// first, so that its colour stays the same when there is another version.
func (v *statisticsView) chartLines() []*statisticsRow {
	var lines []*statisticsRow
	for i := range v.Rows {
		switch {
		case v.Rows[i].Version == nil:
		case len(lines) == chart.LinesMax:
			v.ChartsLeft++
		default:
			lines = append(lines, &v.Rows[i])
		}
	}

	slices.Reverse(lines)
	for i, r := range lines {
		r.Class = "c" + strconv.Itoa(i+1)
	}

	return lines
}

// versionDrawing draws charts with one line for each of some versions.
type versionDrawing struct {
	filter filter.Filter
	bucket time.Duration
	lines  []*statisticsRow
}

// chart draws one number of the versions.
func (d versionDrawing) chart(
	title string, format func(float64) string, value func(t *wire.Totals) float64,
) *chart.Chart {
	c := &chart.Chart{Title: title, Format: format, Bucket: d.bucket}
	byDate := map[string]chart.Point{}
	for i, r := range d.lines {
		c.Names = append(c.Names, "v"+strconv.Itoa(*r.Version))
		for _, b := range r.Series {
			p, ok := byDate[b.Date]
			if !ok {
				// A version without requests in a bucket has no value there.
				missing := slices.Repeat([]float64{math.NaN()}, len(d.lines))
				from, to := d.filter.Bucket(b.Date, d.bucket)
				p = chart.Point{At: from, To: to, Values: missing}
				byDate[b.Date] = p
			}
			p.Values[i] = value(&b.Totals)
		}
	}
	c.Points = slices.SortedFunc(maps.Values(byDate), func(a, b chart.Point) int { return a.At.Compare(b.At) })

	c.Link = func(p chart.Point) string {
		return d.filter.Between(p.At, p.To).Requests()
	}
	c.LinkValue = func(p chart.Point, i int) string {
		f := withVersion(d.filter, d.lines[i].Version)
		return f.Between(p.At, p.To).Requests()
	}

	return c
}
