// Package overview has the dashboard's pages of what there is as a whole: the numbers of all requests, and
// the sidecars that send them.
package overview

import (
	"cmp"
	"embed"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/number"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// overviewView is what the first page shows.
type overviewView struct {
	filter.Form
	Totals  wire.Totals
	Failed  string // the address of the requests that failed
	Charts  []*chart.Chart
	Tables  []breakdown
	Order   table.Order // of the tables
	Bucket  string
	Buckets []string
	Crowded int // how many bars a chart would have, if that is too many to draw
	Counted frame.Counted
	Wide    []string // metadata keys with too many values to list
	Error   *wire.Error
}

const (
	// pointsMax bounds the bars of a chart whose interval is chosen for the reader: as many
	// as can be told apart and clicked, on a page that stays small.
	pointsMax = 50

	// crowdedMin bounds them if the reader chose the interval.
	crowdedMin = 62
)

// breakdown is a table of numbers for each value of something.
type breakdown struct {
	Title  string
	Tokens bool // the rows have tokens
	Rates  bool // the rows have error rates and latencies
	Rows   []breakdownRow
}

type breakdownRow struct {
	wire.Totals
	Name, Href string
	term       filterline.Term // that its requests match
}

// breakdownColumns are what the tables can be sorted by.
var breakdownColumns = table.Columns[breakdownRow]{
	"requests": func(r *breakdownRow) float64 { return float64(r.Requests) },
	"cost":     func(r *breakdownRow) float64 { return r.Cost },
	"tokens":   func(r *breakdownRow) float64 { return float64(r.Tokens()) },
	"errors":   func(r *breakdownRow) float64 { return r.ErrorRate },
	"p50":      func(r *breakdownRow) float64 { return table.OrNaN(r.Latency.P50) },
	"p95":      func(r *breakdownRow) float64 { return table.OrNaN(r.Latency.P95) },
}

func (p *pages) overviewPage(c *frame.Exchange) error {
	query := c.URL.Query()
	f := c.Filter(query)
	v := overviewView{
		Form:    filter.NewForm("/", f),
		Bucket:  query.Get("bucket"),
		Buckets: wire.Buckets,
	}

	own := f.Values()
	if v.Bucket != "" {
		own.Set("bucket", v.Bucket)
	}
	page := c.CountedPage("/", own)
	var a wire.Analytics
	s, err := f.Search()
	if err == nil {
		a, err = p.records.Analyze(c.Context(), c.Identity(), page.Bounded(wire.StatisticsQuery{
			FilterGroup: s.FilterGroup,
			FilterLine:  wire.FilterLine{Zone: f.Zone().String()},
			Bucket:      v.Bucket,
			PointsMax:   pointsMax,
		}))
	}

	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Reject(e)
		return c.Show(e.Status(), "overview", f.Title("Overview"), "overview", v)
	}
	if err != nil {
		return err
	}

	v.Totals, v.Counted, v.Wide = a.Overall, page.Counted(a.Progress), a.MetadataKeysWide
	if a.TotalRequests > 0 {
		v.Failed = f.With(success.Negated()).Requests()
		v.Order = table.Read("/", query)
		v.Tables = breakdowns(f, v.Order, a)
	}

	// More bars could not be told apart. The page says so in their place.
	if len(a.Stats) <= crowdedMin {
		v.Charts = overviewCharts(f, a)
	} else {
		v.Crowded = len(a.Stats)
	}

	return c.Show(http.StatusOK, "overview", f.Title("Overview"), "overview", v)
}

// success is the condition that a request meets unless it failed.
var success = filterline.Where("status", "", "SUCCESS")

// overviewCharts draws the series of an answer.
func overviewCharts(f filter.Filter, a wire.Analytics) []*chart.Chart {
	bucket := time.Duration(a.ChartInterval.BucketSizeMS) * time.Millisecond
	newChart := func(title string, names []string, values func(t wire.Totals) []float64) *chart.Chart {
		c := &chart.Chart{Title: title, Names: names, Format: number.Count, Bucket: bucket}
		c.Link = func(p chart.Point) string {
			return f.Between(p.At, p.To).Requests()
		}
		for _, b := range a.Series() {
			from, to := f.Bucket(b.Date, bucket)
			c.Points = append(c.Points, chart.Point{At: from, To: to, Values: values(b.Totals)})
		}
		return c
	}

	ended := []filter.Filter{f.With(success), f.With(success.Negated())}
	requests := newChart("Requests", []string{"succeeded", "failed"}, func(t wire.Totals) []float64 {
		return []float64{float64(t.Requests - t.Errors), float64(t.Errors)}
	})
	requests.Bars, requests.Bad = true, 2
	requests.LinkName = func(i int) string { return address.Of("/", ended[i].Values()) }
	requests.LinkValue = func(p chart.Point, i int) string {
		if i == 0 {
			// Most of a bar: the whole bar leads to it, and the page stays small.
			return ""
		}
		return ended[i].Between(p.At, p.To).Requests()
	}

	latency := newChart("Latency", []string{"p50", "p95"}, func(t wire.Totals) []float64 {
		return []float64{table.OrNaN(t.Latency.P50), table.OrNaN(t.Latency.P95)}
	})
	latency.Format, latency.Time = number.Seconds, true

	cost := newChart("Cost", []string{"cost"}, func(t wire.Totals) []float64 {
		return []float64{t.Cost}
	})
	cost.Format, cost.Bars = number.Dollars, true

	tokens := newChart("Tokens", []string{"in", "out"}, func(t wire.Totals) []float64 {
		return []float64{float64(t.InputTokens), float64(t.OutputTokens)}
	})
	tokens.Bars = true

	all := []*chart.Chart{requests, latency, cost, tokens}
	if names := scoreNames(a.Scores); names != nil {
		all = append(all, newChart("Scores, mean", names, func(t wire.Totals) []float64 {
			return scoreMeans(names, t.Scores)
		}))
	}
	// Two stand side by side, so one more leaves no gap.
	if len(all)%2 == 1 {
		errors := newChart("Error rate", []string{"failed"}, func(t wire.Totals) []float64 {
			return []float64{t.ErrorRate}
		})
		errors.Format, errors.Bad = number.Percent, 1
		errors.Link = func(p chart.Point) string { return ended[1].Between(p.At, p.To).Requests() }
		all = slices.Insert(all, 1, errors)
	}
	chart.KeepFirstLinks(all)

	return all
}

// scoreNames returns the names of the most frequent scores that have a mean, which categories have not.
func scoreNames(all []wire.ScoreSum) []string {
	names := slices.DeleteFunc(wire.ScoreNames(all), func(name string) bool {
		return math.IsNaN(wire.SumOf(all, name).Charted(""))
	})

	return names[:min(len(names), chart.LinesMax)]
}

// scoreMeans returns the mean of each named score, or NaN.
func scoreMeans(names []string, scores []wire.ScoreSum) []float64 {
	means := slices.Repeat([]float64{math.NaN()}, len(names))
	for i, name := range names {
		if s := wire.SumOf(scores, name); s != nil {
			means[i] = s.Charted("")
		}
	}

	return means
}

// breakdownRowsMax bounds a table: it is an overview.
const breakdownRowsMax = 12

// breakdowns returns the tables of an answer in an order, without empty ones.
func breakdowns(f filter.Filter, order table.Order, a wire.Analytics) []breakdown {
	all := []breakdown{
		totalsBy("Models", "model", a.ByModel),
		totalsBy("Templates", "template", a.ByTemplate),
		totalsBy("Providers", "provider", a.ByProvider),
		byTag(a.TagsBreakdown),
		byMetadata(a.MetadataValueBreakdown),
	}

	for i := range all {
		b := &all[i]
		table.Sort(order, b.Rows, breakdownColumns)
		b.Rows = b.Rows[:min(len(b.Rows), breakdownRowsMax)]
		for j := range b.Rows {
			b.Rows[j].Href = f.With(b.Rows[j].term).Requests()
		}
	}

	return slices.DeleteFunc(all, func(b breakdown) bool { return len(b.Rows) == 0 })
}

func byTag(tags []wire.Breakdown) breakdown {
	b := breakdown{Title: "Tags", Tokens: true}
	for _, t := range tags {
		b.Rows = append(b.Rows, breakdownRow{
			Totals: wire.Totals{Requests: t.Requests, InputTokens: t.Tokens, Cost: t.Cost},
			Name:   t.Tag,
			term:   filterline.Where("tag", "", t.Tag),
		})
	}

	return b
}

func byMetadata(values []wire.MetadataCost) breakdown {
	b := breakdown{Title: "Metadata"}
	for _, m := range values {
		// Only the beginning of a long value is known.
		matching := filterline.Where("metadata", m.Key, m.Value)
		if m.Truncated {
			begin := strings.TrimSuffix(m.Value, "…")
			matching = filterline.Where("metadata", m.Key, begin).With(filterline.Begins)
		}

		b.Rows = append(b.Rows, breakdownRow{
			Totals: wire.Totals{Requests: m.Requests, Cost: m.Cost},
			Name:   m.Key + " = " + m.Value,
			term:   matching,
		})
	}

	return b
}

func totalsBy(title, field string, totals map[string]wire.Totals) breakdown {
	b := breakdown{Title: title, Tokens: true, Rates: true}
	names := slices.SortedFunc(maps.Keys(totals), func(x, y string) int {
		return cmp.Or(cmp.Compare(totals[y].Requests, totals[x].Requests), cmp.Compare(x, y))
	})

	for _, name := range names {
		// No name is that of the requests without this field.
		matching := filterline.Where(field, "", name)
		if name == "" {
			matching = filterline.Absent(field)
		}

		b.Rows = append(b.Rows, breakdownRow{Totals: totals[name], Name: cmp.Or(name, "unknown"), term: matching})
	}

	return b
}

// projectsTime is the time that the page of all projects sums up.
const projectsTime = "since:7d"

// projectsView is what the page of all projects shows.
type projectsView struct {
	Rows    []projectRow
	Counted frame.Counted // of a project that is not counted to the end, if there is one
}

type projectRow struct {
	wire.Membership
	Href    string // the first page there, with the requests of the same time
	Totals  wire.Totals
	Counted frame.Counted
	Scores  string
}

// projectsPage shows all projects of the reader side by side.
func (p *pages) projectsPage(c *frame.Exchange) error {
	var v projectsView
	f := c.Filter(url.Values{"filter": {projectsTime}})
	page := c.CountedPage("/projects", url.Values{})
	mine := c.Projects()
	s, err := f.Search()
	if err != nil {
		return err
	}

	query := page.Bounded(wire.StatisticsQuery{
		FilterGroup: s.FilterGroup,
		FilterLine:  wire.FilterLine{Zone: f.Zone().String()},
		PointsMax:   1,
	})
	// A reader of many projects waits no longer than one of a single one; the script asks again.
	query.Budget = max(query.Budget/time.Duration(len(mine)), 10*time.Millisecond)

	for _, m := range mine {
		a, err := p.records.Analyze(c.Context(), c.IdentityIn(m), query)
		if err != nil {
			return err
		}

		row := projectRow{
			Membership: m,
			Href:       address.With(address.Of("/", f.Values()), "project", m.AccountName),
			Totals:     a.Overall,
			Counted:    page.Counted(a.Progress),
			Scores:     scoresText(a.Overall.Scores),
		}
		if row.Counted.Incomplete {
			v.Counted = row.Counted
		}
		v.Rows = append(v.Rows, row)
	}

	return c.Show(http.StatusOK, "projects", "All projects", "projects", v)
}

// scoresText prints the most frequent scores.
func scoresText(all []wire.ScoreSum) string {
	names := wire.ScoreNames(all)
	var texts []string
	for _, name := range names[:min(len(names), chart.LinesMax)] {
		texts = append(texts, name+" "+wire.SumOf(all, name).String())
	}

	return strings.Join(texts, ", ")
}

// pages are the pages of what there is as a whole.
type pages struct {
	records   wire.Archive
	retention Retention
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of what there is as a whole.
func Pages(records wire.Archive, retention Retention) frame.Section {
	p := &pages{records, retention}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /{$}", Page: p.overviewPage},
			{Pattern: "GET /projects", Page: p.projectsPage},
			{Pattern: "GET /sidecars", Page: p.sidecarsPage},
		},
	}
}

// Retention limits what the server keeps of each account. Zero values mean no limit.
type Retention struct {
	Age   time.Duration
	Bytes int64 // of bodies, uncompressed
}

// sidecarsView is what the page of sidecars shows.
type sidecarsView struct {
	Order     table.Order
	Items     []wire.FleetSidecar
	Alive     int
	Waiting   int64       // events in all spools
	InNeed    int         // sidecars that need attention
	Server    []wire.Drop // by this server itself, today
	Kept      wire.Kept
	Retention Retention
}

// sidecarColumns are what the sidecars can be sorted by.
var sidecarColumns = table.Columns[wire.FleetSidecar]{
	"seen":   func(s *wire.FleetSidecar) float64 { return table.At(&s.LastSeen) },
	"queued": func(s *wire.FleetSidecar) float64 { return float64(s.BacklogEvents) },
	"bytes":  func(s *wire.FleetSidecar) float64 { return float64(s.BacklogBytes) },
	"oldest": func(s *wire.FleetSidecar) float64 { return s.OldestSeconds },
	"held":   func(s *wire.FleetSidecar) float64 { return float64(s.HeldEvents) },
	"dead":   func(s *wire.FleetSidecar) float64 { return float64(s.DeadLetters + s.Dropped) },
	"lost":   func(s *wire.FleetSidecar) float64 { return float64(s.LostEvents) },
	"clock":  func(s *wire.FleetSidecar) float64 { return table.OrNaN(s.ClockAhead) },
}

func (p *pages) sidecarsPage(c *frame.Exchange) error {
	fleet, err := c.Fleet()
	if err != nil {
		return err
	}

	v := sidecarsView{Items: fleet.Items, InNeed: fleet.InNeed(), Server: fleet.DroppedToday, Retention: p.retention}
	for _, s := range fleet.Items {
		if s.Alive {
			v.Alive++
		}
		v.Waiting += s.BacklogEvents
	}

	v.Order = table.Read("/sidecars", c.URL.Query())
	table.Sort(v.Order, v.Items, sidecarColumns)
	v.Kept, err = p.records.Kept(c.Context(), c.Identity())
	if err != nil {
		return err
	}

	return c.Show(http.StatusOK, "sidecars", "Sidecars", "sidecars", v)
}
