package dashboard

import (
	"cmp"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"promptspool/api/wire"
)

func (d *Dashboard) overviewRoutes() {
	d.handle("GET /{$}", wire.RoleViewer, d.overviewPage)
}

// overviewView is what the first page shows.
type overviewView struct {
	filterView
	Totals  wire.Totals
	Charts  []*chart
	Tables  []breakdown
	Bucket  string
	Buckets []string
	Crowded int // bars that there would be, if they are too many to draw
	Counted counted
	Wide    []string // metadata keys whose values are too many to list
	Error   *wire.Error
}

const (
	// pointsMax is how many bars a chart has whose bars are of fitting time: as many as can be told apart and pointed at, on a page
	// that stays light. Who chooses their time gets crowdedMin at most.
	pointsMax  = 50
	crowdedMin = 62
)

// breakdown is the numbers by one thing.
type breakdown struct {
	Title  string
	Tokens bool // are known
	Rates  bool // of errors, and latencies, are known
	Rows   []breakdownRow
}

type breakdownRow struct {
	Name, Href string
	Requests   int64
	Tokens     int64
	Cost       float64
	ErrorRate  string
	P50, P95   *float64 // latency in seconds
}

func (d *Dashboard) overviewPage(c *call) error {
	query := c.URL.Query()
	f := readFilter(query)
	v := overviewView{filterView: viewFilter("/", f), Bucket: query.Get("bucket"), Buckets: wire.Buckets}
	page := question{"/", f.values(), query.Has(countAll)}
	if v.Bucket != "" {
		page.query.Set("bucket", v.Bucket)
	}

	a, err := d.Records.Analyze(c.Context(), c.identity(), page.bounded(wire.StatisticsQuery{
		FilterGroup: f.group(d.Now()), Q: f.Q, Bucket: v.Bucket, PointsMax: pointsMax,
	}))
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Error = e
		return d.show(c, e.Status(), "overview", "Overview", "overview", v)
	}
	if err != nil {
		return err
	}

	v.Totals, v.Counted, v.Wide = a.Overall, page.counted(a.Progress), a.MetadataKeysWide
	if a.TotalRequests > 0 {
		v.Tables = breakdowns(f, a)
	} else if !a.Incomplete {
		d.suggestClosest(c, &v.filterView)
	}
	if v.Crowded = len(a.Stats); v.Crowded <= crowdedMin {
		v.Charts, v.Crowded = charts(f, a), 0
	}
	return d.show(c, http.StatusOK, "overview", "Overview", "overview", v)
}

// charts draw the series of an answer.
func charts(f filter, a wire.Analytics) []*chart {
	bucket := time.Duration(a.ChartInterval.BucketSizeMS) * time.Millisecond
	link := func(p point) string { return address("/requests", f.between(p.At, p.At.Add(bucket)).values()) }
	draw := func(title string, bars bool, format func(float64) string, names []string, values func(s wire.AnalyticsStat) []float64) *chart {
		c := &chart{Title: title, Names: names, Format: format, Bars: bars, Bucket: bucket, Link: link}
		for _, s := range a.Stats {
			c.Points = append(c.Points, point{dateOf(s.Date), values(s)})
		}
		return c
	}
	all := []*chart{
		draw("Requests", true, count, []string{"succeeded", "failed"}, func(s wire.AnalyticsStat) []float64 {
			good := s.StatusCounts["SUCCESS"]
			return []float64{float64(good), float64(s.Requests - good)}
		}),
		draw("Latency", false, seconds, []string{"p50", "p95", "p99"}, func(s wire.AnalyticsStat) []float64 {
			return []float64{at(a.Latency.P50, s.Date), at(a.Latency.P95, s.Date), at(a.Latency.P99, s.Date)}
		}),
		draw("Cost", true, dollars, []string{"cost"}, func(s wire.AnalyticsStat) []float64 { return []float64{s.Cost} }),
		draw("Tokens", true, count, []string{"in", "out"}, func(s wire.AnalyticsStat) []float64 {
			return []float64{float64(s.InputTokens), float64(s.OutputTokens)}
		}),
	}
	if names := scoreNames(a.Scores); names != nil {
		all = append(all, draw("Scores, mean", false, count, names, func(s wire.AnalyticsStat) []float64 { return scoreMeans(names, s.Scores) }))
	}
	for _, c := range all[1:] {
		c.Bare = true
	}
	all[1].Time = true
	return all
}

// linesMax is how many lines a chart has at most: so many colours can be told apart.
const linesMax = 6

// scoreNames are the names of the scores that came most.
func scoreNames(all []wire.ScoreSum) []string {
	most := slices.SortedFunc(slices.Values(all), func(a, b wire.ScoreSum) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	var names []string
	for _, s := range most[:min(len(most), linesMax)] {
		names = append(names, s.Name)
	}
	return names
}

func scoreMeans(names []string, scores []wire.ScoreSum) []float64 {
	means := make([]float64, len(names))
	for i, name := range names {
		means[i] = math.NaN()
		for _, s := range scores {
			if s.Name == name {
				means[i] = s.Mean
			}
		}
	}
	return means
}

func at(values map[string]float64, date string) float64 {
	if v, ok := values[date]; ok {
		return v
	}
	return math.NaN()
}

// dateOf reads the date of a bucket.
func dateOf(date string) time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, date); err == nil {
			return t
		}
	}
	return time.Time{}
}

// breakdowns are the tables of an answer.
func breakdowns(f filter, a wire.Analytics) []breakdown {
	metadata := breakdown{Title: "Metadata"}
	for _, m := range a.MetadataValueBreakdown[:min(len(a.MetadataValueBreakdown), breakdownRowsMax)] {
		which := condition{"metadata", m.Key, "is", m.Value}
		if m.Truncated {
			which = condition{"metadata", m.Key, "starts_with", strings.TrimSuffix(m.Value, "…")}
		}
		metadata.Rows = append(metadata.Rows, breakdownRow{
			Name: m.Key + " = " + m.Value, Requests: m.Requests, Cost: m.Cost,
			Href: address("/requests", f.with(which).values()),
		})
	}
	tags := breakdown{Title: "Tags", Tokens: true}
	for _, t := range a.TagsBreakdown[:min(len(a.TagsBreakdown), breakdownRowsMax)] {
		tags.Rows = append(tags.Rows, breakdownRow{Name: t.Tag, Requests: t.Requests, Cost: t.Cost, Tokens: t.Tokens,
			Href: address("/requests", f.with(condition{"tags", "", "is", t.Tag}).values())})
	}
	all := []breakdown{
		totalsBy("Models", "model", f, a.ByModel), totalsBy("Templates", "prompt_name", f, a.ByTemplate),
		totalsBy("Providers", "provider", f, a.ByProvider), tags, metadata,
	}
	return slices.DeleteFunc(all, func(b breakdown) bool { return len(b.Rows) == 0 })
}

// breakdownRowsMax bounds a table: it is an overview.
const breakdownRowsMax = 12

func totalsBy(title, field string, f filter, by map[string]wire.Totals) breakdown {
	b := breakdown{Title: title, Tokens: true, Rates: true}
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(by[y].Requests, by[x].Requests), cmp.Compare(x, y))
	})
	for _, name := range names[:min(len(names), breakdownRowsMax)] {
		t, op := by[name], "is"
		if name == "" {
			op = "is_null"
		}
		b.Rows = append(b.Rows, breakdownRow{Name: cmp.Or(name, "unknown"), Requests: t.Requests, Cost: t.Cost, Tokens: t.Tokens(),
			ErrorRate: percent(t.ErrorRate), P50: t.Latency.P50, P95: t.Latency.P95,
			Href: address("/requests", f.with(condition{field, "", op, name}).values())})
	}
	return b
}
