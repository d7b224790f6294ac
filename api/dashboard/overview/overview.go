// Package overview has the dashboard's pages of what there is as a whole: the numbers of all requests, and
// the sidecars that send them.
package overview

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"promptspool/api/dashboard/address"
	"promptspool/api/dashboard/chart"
	"promptspool/api/dashboard/filter"
	"promptspool/api/dashboard/frame"
	"promptspool/api/dashboard/table"
	"promptspool/api/filterline"
	"promptspool/api/wire"
)

// success is the condition that a request meets unless it failed.
var success = filterline.Where("status", "", "SUCCESS")

// overviewView is what the first page shows.
type overviewView struct {
	filter.Form
	Totals     wire.Totals
	Counted    frame.Counted
	Tiles      []tile
	Axis       axis         // of the tiles' lines
	Cells      [][]timeCell // what the lines show, as a table
	Before     string       // what the tiles are compared with
	Everything string       // the address that waits until all of this is counted, or ""
	Groups     groupsView
	Crowded    int // how many bars the chart would have, if that is too many to draw
	Bucket     string
	Buckets    []string
	Error      *wire.Error
}

const (
	// pointsMax bounds the bars of a chart whose interval is chosen for the reader: as many
	// as can be told apart and clicked, on a page that stays small.
	pointsMax = 50

	// crowdedMin bounds them if the reader chose the interval.
	crowdedMin = 62
)

// usualTime is the time that the page shows unless its address has a filter: it has a period before to be
// compared with. An empty filter is all time.
const usualTime = "since:7d"

func (p *pages) overviewPage(c *frame.Exchange) error {
	query, title := c.URL.Query(), ""
	isUsual := !query.Has("filter") && !query.Has("from") && !query.Has("to")
	if isUsual {
		query.Set("filter", usualTime)
		title = "Overview"
	}
	q := readOverview(c, query)
	a, before, parts, err := q.ask(p.records)
	// All calls may be older.
	if isUsual && err == nil && a.TotalRequests == 0 && !a.Incomplete {
		query.Del("filter")
		q = readOverview(c, query)
		a, before, parts, err = q.ask(p.records)
	}

	f := q.filter
	title = cmp.Or(title, f.Title("Overview"))
	v := overviewView{Form: filter.NewForm("/", f), Bucket: q.bucket, Buckets: wire.Buckets}
	var moved []wire.TemplateMove
	if err == nil {
		from, _ := q.span()
		moved, err = p.labels.Moved(c.Context(), c.Identity(), from)
	}

	// A filter that makes no sense is shown in its form, where it can be corrected.
	if e := wire.AsError(err); err != nil && e.Code == wire.CodeInvalid {
		v.Reject(e)
		return c.Show(e.Status(), "overview", title, "overview", v)
	}
	if err != nil {
		return err
	}

	v.Totals, v.Counted = a.Overall, c.Counted("/", a.Progress)
	v.Groups.Counted = c.Counted("/", parts.Progress)
	v.Everything = cmp.Or(v.Counted.Everything, v.Groups.Counted.Everything, c.Counted("/", before.Progress).Everything)
	if a.TotalRequests == 0 {
		return c.Show(http.StatusOK, "overview", title, "overview", v)
	}

	var compared bool
	v.Before, compared = q.comparedWith(&a, &before)
	if !compared {
		before = wire.Analytics{}
	}
	v.showTiles(q, &a, &before)
	v.showGroups(q, &a, &parts)
	v.Groups.Chart.MarkMoves(moved, f.Demands("template"))
	if n := len(v.Groups.Chart.Points); n > crowdedMin {
		// More bars could not be told apart. The page says so in their place.
		v.Crowded = n
	}

	return c.Show(http.StatusOK, "overview", title, "overview", v)
}

// overviewQuery is what the reader asks the first page.
type overviewQuery struct {
	*frame.Exchange
	filter                filter.Filter
	bucket, metric, group string // as the address has them
}

// readOverview reads the query of the first page's address.
func readOverview(c *frame.Exchange, query url.Values) overviewQuery {
	q := overviewQuery{
		Exchange: c,
		filter:   c.Filter(query),
		bucket:   query.Get("bucket"),
		metric:   query.Get("metric"),
		group:    query.Get("group"),
	}
	q.filter.Timed = true
	q.filter.Kept = q.kept(q.metric, q.group)

	return q
}

// kept returns what the page's addresses have besides the filter.
func (q overviewQuery) kept(metric, group string) url.Values {
	kept := url.Values{}
	for name, value := range map[string]string{"metric": metric, "group": group, "bucket": q.bucket} {
		if value != "" {
			kept.Set(name, value)
		}
	}

	return kept
}

// ask asks for all calls, for those of the period before, and for the groups. All three at the same time, so
// that the page waits as long as for one of them.
func (q overviewQuery) ask(records wire.Archive) (
	all, before wire.Analytics, parts wire.Statistics, err error,
) {
	group, err := q.filter.Group()
	if err != nil {
		return all, before, parts, err
	}
	question := wire.StatisticsQuery{
		FilterGroup: group,
		FilterLine:  wire.FilterLine{Zone: q.filter.Zone().String()},
		PointsMax:   pointsMax,
	}

	from, to := q.span()
	if !from.IsZero() {
		question.From, question.To = from, to
	}

	var errBefore, errParts error
	var asked sync.WaitGroup
	if f, ok := q.periodBefore(); ok {
		asked.Go(func() {
			earlier := question
			earlier.From, earlier.To = from.Add(from.Sub(to)), from
			earlier.FilterGroup, errBefore = f.Group()
			if errBefore == nil {
				before, errBefore = records.Analyze(q.Context(), q.Identity(), q.Bounded(earlier))
			}
		})
	}
	asked.Go(func() {
		grouped := wire.PartsQuery{StatisticsQuery: q.Bounded(question)}
		grouped.Bucket, grouped.By = q.bucket, groupingOf(q.group).by
		grouped.SeriesMax, grouped.Rank = chart.LinesMax, rankOf(q.metric)
		grouped.ScoreSeries = strings.HasPrefix(q.metric, scorePrefix)
		parts, errParts = records.Statistics(q.Context(), q.Identity(), grouped)
	})
	all, err = records.Analyze(q.Context(), q.Identity(), q.Bounded(question))
	asked.Wait()

	return all, before, parts, cmp.Or(err, errBefore, errParts)
}

// periodBefore returns the filter of the time before that of the page, as long as it. It reports false if that
// has no beginning.
func (q overviewQuery) periodBefore() (filter.Filter, bool) {
	from, to := q.span()
	if from.IsZero() || !to.After(from) {
		return filter.Filter{}, false
	}

	return q.filter.Between(from.Add(from.Sub(to)), from), true
}

// span returns the time of the page, until now if it has no end. It has whole seconds.
func (q overviewQuery) span() (from, to time.Time) {
	from, to = q.filter.Range()
	if to.IsZero() || to.After(q.Now()) {
		to = q.Now()
	}

	return from.Truncate(time.Second), to.Truncate(time.Second)
}

// comparedWith says what the tiles are compared with, or why they are not.
func (q overviewQuery) comparedWith(a, before *wire.Analytics) (text string, compared bool) {
	f, ok := q.periodBefore()
	switch {
	case !ok:
		return "There is no period before to compare with: this time has no beginning.", false
	case a.Incomplete || before.Incomplete:
		return "Compared with the period before once all calls are counted.", false
	}

	from, to := f.Range()
	period := "the period before, " + filter.NewForm("/", f).Range
	if before.TotalRequests == 0 {
		return "There is nothing to compare with: no calls in " + period + ".", false
	}

	// Calls may have begun in the midst of it, or older ones are deleted.
	bucket := bucketOf(before.ChartInterval)
	first, _ := f.Bucket(before.Stats[0].Date, bucket)
	begin, late := first.Format("Jan 2 15:04"), first.Sub(from)
	if bucket >= 24*time.Hour {
		begin = first.Format("Jan 2")
	}
	switch {
	case late > to.Sub(from)/2:
		return "There is too little to compare with: " + period + ", has calls since " + begin + " only.", false
	case late > to.Sub(from)/10:
		return "Compared with " + period + ", which has calls since " + begin + " only.", true
	}

	return "Compared with " + period + ".", true
}

// projectsTime is the time that the page of all projects sums up.
const projectsTime = "since:7d"

// projectsView is what the page of all projects shows.
type projectsView struct {
	Rows    []projectRow
	Counted frame.Counted // of a project that is not counted to the end, if there is one
	Typed   string        // the name of a new one
	Error   *wire.Error   // what is wrong with it
}

type projectRow struct {
	wire.Membership
	Href    string // the first page there, with the requests of the same time
	Totals  wire.Totals
	Counted frame.Counted
	Scores  string
}

// foundProject makes a project.
func (p *pages) foundProject(c *frame.Exchange) error {
	name := strings.TrimSpace(c.PostForm.Get("name"))
	err := c.FoundProject(name)
	if e := frame.Correctable(err); e != nil {
		return p.showProjects(c, e.Status(), projectsView{Typed: name, Error: e})
	}
	if err != nil {
		return err
	}

	return c.Redirect("/", "founded")
}

func (p *pages) projectsPage(c *frame.Exchange) error {
	return p.showProjects(c, http.StatusOK, projectsView{})
}

// showProjects shows all projects of the reader side by side.
func (p *pages) showProjects(c *frame.Exchange, status int, v projectsView) error {
	f := c.Filter(url.Values{"filter": {projectsTime}})
	mine := c.Projects()
	s, err := f.Search()
	if err != nil {
		return err
	}

	query := c.Bounded(wire.StatisticsQuery{
		FilterGroup: s.FilterGroup,
		FilterLine:  wire.FilterLine{Zone: f.Zone().String()},
		PointsMax:   1,
	})
	// A reader of many projects waits no longer than one of a single one.
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
			Counted:    c.Counted("/projects", a.Progress),
			Scores:     scoresText(a.Overall.Scores),
		}
		if row.Counted.Incomplete {
			v.Counted = row.Counted
		}
		v.Rows = append(v.Rows, row)
	}

	return c.Show(status, "projects", "All projects", "projects", v)
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
	labels    Labels
	retention Retention
}

// Labels knows when labels of templates were moved: see wire.Registry.
type Labels interface {
	Moved(ctx context.Context, id wire.Identity, since time.Time) ([]wire.TemplateMove, error)
}

//go:embed *.html
var html embed.FS

// Pages returns the pages of what there is as a whole.
func Pages(records wire.Archive, labels Labels, retention Retention) frame.Section {
	p := &pages{records, labels, retention}

	return frame.Section{
		HTML: html,
		Routes: []frame.Route{
			{Pattern: "GET /{$}", Page: p.overviewPage},
			{Pattern: "GET /projects", Page: p.projectsPage},
			{Pattern: "POST /projects", Page: p.foundProject},
			{Pattern: "GET /sidecars", Page: p.sidecarsPage},
		},
		Notices: map[string]string{
			"founded": "The project is created, and open now. Nobody else is in it yet.",
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
