package dashboard

import (
	"cmp"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"promptspool/api/wire"
)

// statisticsView is what the comparison of a template's versions by their numbers shows.
type statisticsView struct {
	templateHead
	Span       string
	Spans      []span
	Score      string   // whose means the charts and the table show
	Scores     []string // the names that there are
	Bucket     string
	Buckets    []string
	Rows       []statisticsRow
	Charts     []*chart
	ChartsLeft int // versions that have no line, for there are too many
	Counted    counted
	Cut        int64 // requests of versions beyond those that are listed
}

// versionPointsMax is how many points a line has: each leads to its own requests, and there are linesMax lines in each of the charts.
const versionPointsMax = 20

// statisticsRow is what is known of one version.
type statisticsRow struct {
	wire.VersionTotals
	Labels  []wire.Label
	Message string
	Href    string // the requests behind it
	Score   *wire.ScoreSum
	Mean    *float64 // cost of 1000 requests: that of one is too small to read
	// Best marks what is better than that of every other version.
	BestScore, BestLatency, BestCost bool
	Class                            string // its colour in the charts; "" for none
}

func (d *Dashboard) statisticsPage(c *call) error {
	head, err := d.head(c, "statistics")
	if err != nil {
		return err
	}
	q := c.URL.Query()
	v := statisticsView{templateHead: head, Span: q.Get("span"), Spans: spans, Score: q.Get("score"), Bucket: q.Get("bucket"), Buckets: wire.Buckets}
	f := filter{Span: v.Span, Conditions: []condition{{"prompt_name", "", "is", head.Name}}}
	page := question{"/template/statistics", url.Values{"name": {head.Name}}, q.Has(countAll)}
	for _, name := range []string{"span", "score", "bucket"} {
		if value := q.Get(name); value != "" {
			page.query.Set(name, value)
		}
	}

	answer, err := d.Records.TemplateStatistics(c.Context(), c.identity(), page.bounded(wire.StatisticsQuery{
		FilterGroup: f.group(d.Now()), Bucket: v.Bucket, PointsMax: versionPointsMax,
	}))
	if err != nil {
		return err
	}

	v.Counted, v.Cut = page.counted(answer.Progress), answer.VersionsLeftOut
	v.Scores = scoreNamesOf(answer.Versions)
	if !slices.Contains(v.Scores, v.Score) && len(v.Scores) > 0 {
		v.Score = v.Scores[0]
	}
	for _, t := range slices.Backward(answer.Versions) {
		v.Rows = append(v.Rows, v.row(f, t))
	}
	v.markBest()
	v.Charts = v.charts(f, answer.ChartInterval)
	return d.show(c, http.StatusOK, "statistics", head.Name, "templates", v)
}

func (v *statisticsView) row(f filter, t wire.VersionTotals) statisticsRow {
	row := statisticsRow{VersionTotals: t, Href: address("/requests", ofVersion(f, t.Version).values())}
	if priced := t.Requests - t.Unpriced; priced > 0 {
		mean := 1000 * t.Cost / float64(priced)
		row.Mean = &mean
	}
	row.Score = scoreOf(t.Scores, v.Score)
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

func ofVersion(f filter, version *int) filter {
	if version == nil {
		return f.with(condition{"prompt_version_number", "", "is_null", ""})
	}
	return f.with(condition{"prompt_version_number", "", "is", strconv.Itoa(*version)})
}

func scoreOf(scores []wire.ScoreSum, name string) *wire.ScoreSum {
	for i := range scores {
		if scores[i].Name == name {
			return &scores[i]
		}
	}
	return nil
}

// scoreNamesOf are the names of the versions' scores, those that came most first.
func scoreNamesOf(versions []wire.VersionTotals) []string {
	counts := map[string]int64{}
	var names []string
	for _, v := range versions {
		for _, s := range v.Scores {
			if counts[s.Name] == 0 {
				names = append(names, s.Name)
			}
			counts[s.Name] += s.Count
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return names
}

// markBest marks the version that is better than all others in something, if there is one.
func (v *statisticsView) markBest() {
	best := func(value func(r *statisticsRow) float64) *statisticsRow {
		top, second, at := math.Inf(-1), math.Inf(-1), -1
		known := 0
		for i := range v.Rows {
			x := value(&v.Rows[i])
			if math.IsNaN(x) {
				continue
			}
			known++
			if x > top {
				top, second, at = x, top, i
			} else {
				second = max(second, x)
			}
		}
		if known < 2 || top == second {
			return new(statisticsRow)
		}
		return &v.Rows[at]
	}
	best(func(r *statisticsRow) float64 {
		if r.Score == nil {
			return math.NaN()
		}
		return r.Score.Mean
	}).BestScore = true
	best(func(r *statisticsRow) float64 { return -orNaN(r.Latency.P50) }).BestLatency = true
	best(func(r *statisticsRow) float64 { return -orNaN(r.Mean) }).BestCost = true
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// charts draw a line for each of the newest versions that were used.
func (v *statisticsView) charts(f filter, interval wire.ChartInterval) []*chart {
	var shown []*statisticsRow
	for i := range v.Rows {
		if v.Rows[i].Version == nil {
			continue
		}
		if len(shown) == linesMax {
			v.ChartsLeft++
			continue
		}
		shown = append(shown, &v.Rows[i])
	}
	if len(shown) == 0 {
		return nil
	}
	slices.Reverse(shown) // the oldest first: its colour stays when the next one comes
	var names []string
	dates := map[string]bool{}
	for i, r := range shown {
		r.Class = "c" + strconv.Itoa(i+1)
		names = append(names, "version "+strconv.Itoa(*r.Version))
		for _, b := range r.Series {
			dates[b.Date] = true
		}
	}
	bucket := time.Duration(interval.BucketSizeMS) * time.Millisecond
	draw := func(title string, bars bool, format func(float64) string, value func(t *wire.Totals) float64) *chart {
		c := &chart{Title: title, Names: names, Format: format, Bars: bars, Bucket: bucket}
		c.Link = func(p point) string { return address("/requests", f.between(p.At, p.At.Add(bucket)).values()) }
		c.LinkValue = func(p point, i int) string {
			return address("/requests", ofVersion(f, shown[i].Version).between(p.At, p.At.Add(bucket)).values())
		}
		for date := range dates {
			p := point{dateOf(date), make([]float64, len(shown))}
			for i, r := range shown {
				p.Values[i] = math.NaN()
				if at := slices.IndexFunc(r.Series, func(b wire.BucketTotals) bool { return b.Date == date }); at >= 0 {
					p.Values[i] = value(&r.Series[at].Totals)
				}
			}
			c.Points = append(c.Points, p)
		}
		slices.SortFunc(c.Points, func(a, b point) int { return a.At.Compare(b.At) })
		return c
	}
	var all []*chart
	if v.Score != "" {
		all = append(all, draw("Score "+v.Score+", mean", false, count, func(t *wire.Totals) float64 {
			if s := scoreOf(t.Scores, v.Score); s != nil {
				return s.Mean
			}
			return math.NaN()
		}))
	}
	latency := draw("Latency, p50", false, seconds, func(t *wire.Totals) float64 { return orNaN(t.Latency.P50) })
	latency.Time = true
	all = append(all,
		latency,
		draw("Cost per 1,000 calls", false, dollars, func(t *wire.Totals) float64 {
			if t.Requests == t.Unpriced {
				return math.NaN()
			}
			return 1000 * t.Cost / float64(t.Requests-t.Unpriced)
		}),
		draw("Requests", true, count, func(t *wire.Totals) float64 { return float64(t.Requests) }),
	)
	for _, c := range all[1:] {
		c.Bare = true
	}
	return all
}
