package requests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/filterline"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// statsDimensions are what statistics can be by, besides metadata.KEY.
var statsDimensions = []string{"version", "model", "provider", "tag", "user", "session", "environment"}

func statsCommand() *cli.Command {
	return config.Command("stats",
		"count: requests, errors, scores, latency, tokens, cost; by template version, model, metadata or user",
		requestStats, filter.Flags(), []cli.Flag{
			config.TextFlag("by", "version", "by `what`: "+strings.Join(statsDimensions, ", ")+" or metadata.KEY"),
			config.ChoiceFlag("bucket", "", "`width` of each time bucket, if absent chosen from the time range",
				"second", "minute", "hour", "day"),
		}, config.RemoteFlags())
}

func requestStats(c *cli.Context) error {
	v := config.Read(c)
	by, bucket := v.Text("by"), v.OneOf("bucket")
	key, isKey := strings.CutPrefix(by, "metadata.")
	if !slices.Contains(statsDimensions, by) && (!isKey || key == "") {
		v.Reject("by", "is not one of "+strings.Join(statsDimensions, ", ")+", metadata.KEY"+
			config.DidYouMean(by, statsDimensions))
	}
	line, selected := filter.Read(v)
	asData := v.AsData()
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	q := wire.StatisticsQuery{FilterGroup: selected, Bucket: bucket}
	q.Zone = filter.Zone(v)
	if !isKey {
		key = map[string]string{"user": "user_id", "session": "session_id", "environment": "environment"}[by]
	}
	q.MetadataKey = key
	// Also for versions, which have no line of all requests.
	sums, err := cl.Analyze(c.Context, id, q)
	if err != nil {
		return err
	}

	g := statsGrid(c, by, sums)
	switch by {
	case "version":
		versions, err := cl.TemplateStatistics(c.Context, id, q)
		switch {
		case err != nil:
			return err
		case asData:
			return print.Data(c, versions)
		}
		g.versions(versions)
	case "model":
		g.series(sums.ByModel, sums.ModelRequestsByDay, sums.LatencyByModelByDay)
	case "provider":
		g.series(sums.ByProvider, sums.ProviderRequestsByDay, sums.LatencyByProviderByDay)
	default:
		values, err := eachValue(c, cl, id, q, by, sums)
		switch {
		case err != nil:
			return err
		case asData:
			return print.Data(c, map[string][]valueTotals{"items": values})
		}
		for _, value := range values {
			g.totals(print.Styled(value.Value, print.Cyan), value.Totals, trendsOf(value.sums), g.dates)
		}
		g.bounded = len(values) == valuesMax
	}
	switch {
	case asData:
		return print.Data(c, sums)
	case sums.Overall.Requests == 0 && !sums.Incomplete:
		printUnmatched(c, cl, id, line, "requests")
		return nil
	}
	return g.finish(sums)
}

// valuesMax is how many values of a tag or of metadata are counted, each by another request.
const valuesMax = 20

// valueTotals are the totals of the calls with one value.
type valueTotals struct {
	Value string `json:"value"`
	wire.Totals
	sums wire.Analytics
}

// eachValue counts the calls of the most frequent values.
func eachValue(
	c *cli.Context, cl *client.Client, id wire.Identity, q wire.StatisticsQuery, by string, sums wire.Analytics,
) ([]valueTotals, error) {
	field, part, _ := strings.Cut(by, ".")
	var values []filterline.Term
	for _, m := range sums.MetadataValueBreakdown {
		term := filterline.Where(field, part, m.Value)
		if m.Truncated {
			term = term.With(filterline.Begins)
		}
		if q.MetadataKey != "" && m.Key == q.MetadataKey {
			values = append(values, term)
		}
	}
	for _, t := range sums.TagsBreakdown {
		if by == "tag" {
			values = append(values, filterline.Where(field, part, t.Tag))
		}
	}

	all := []valueTotals{}
	progress := print.NewProgress(c, "Counting", "values", int64(min(len(values), valuesMax)))
	defer progress.End()
	for _, term := range values[:min(len(values), valuesMax)] {
		selected, err := term.Compile(filterline.Clock{})
		if err != nil {
			return all, err
		}
		of := q
		of.FilterGroup = filterline.Both(selected, q.FilterGroup)
		sums, err := cl.Analyze(c.Context, id, of)
		if err != nil {
			return all, err
		}
		all = append(all, valueTotals{term.Values[0].Text, sums.Overall, sums})
		progress.Add(1)
	}
	return all, nil
}

// series adds a row for each of what has a series, the busiest first.
func (g statsTable) series(
	totals map[string]wire.Totals, requests map[string][]wire.Pair, latency map[string]wire.DimensionLatency,
) {
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		// Names decide among equals, so that two runs look the same.
		return cmp.Or(cmp.Compare(totals[b].Requests, totals[a].Requests), strings.Compare(a, b))
	})
	for _, name := range names {
		t := trends{requests: byName(requests[name]), latency: byName(latency[name].P50)}
		g.totals(print.Styled(name, print.Cyan), totals[name], t, g.dates)
	}
}

// versions adds a row for each version of a template.
func (g statsTable) versions(versions wire.TemplateStatistics) {
	all := make(map[string]bool)
	for _, v := range versions.Versions {
		for _, b := range v.Series {
			// Not all versions have all dates, and their trends must be aligned.
			all[b.Date] = true
		}
	}

	order := slices.Sorted(maps.Keys(all))
	for _, v := range versions.Versions {
		t := trends{make(map[string]float64), make(map[string]float64), make(map[string]float64)}
		for _, b := range v.Series {
			t.requests[b.Date], t.cost[b.Date] = float64(b.Requests), b.Cost
			if b.Latency.P50 != nil {
				t.latency[b.Date] = *b.Latency.P50
			}
		}
		name := v.Template + "@?"
		if v.Version != nil {
			name = v.Template + "@" + strconv.Itoa(*v.Version)
		}
		g.totals(print.Styled(name, print.Cyan), v.Totals, t, order)
	}

	if len(versions.Versions) == 0 {
		g.Row(print.Styled("(no request has a template)", print.Faint))
	}
}

// trends are what a row draws, by date. The latency is the median.
type trends struct{ requests, latency, cost map[string]float64 }

func byName(pairs []wire.Pair) map[string]float64 {
	m := make(map[string]float64)
	for _, p := range pairs {
		m[p.Name] = p.Value
	}
	return m
}

// trendsOf are the trends of everything that an answer counts.
func trendsOf(sums wire.Analytics) trends {
	t := trends{make(map[string]float64), sums.Latency.P50, make(map[string]float64)}
	for _, s := range sums.Stats {
		t.requests[s.Date], t.cost[s.Date] = float64(s.Requests), s.Cost
	}
	return t
}

// statsTable is a grid with a row for each of what is counted.
type statsTable struct {
	*print.Grid
	bars     int // of a trend
	progress wire.Progress
	zone     string   // of the dates
	dates    []string // of trends
	scores   []string // by name, the most frequent first, which is the one that rows have
	bounded  bool     // there may be more values
}

func statsGrid(c *cli.Context, by string, sums wire.Analytics) statsTable {
	p := print.NewPainter(c)
	bars := trendBarsMin
	if p.Width > 0 { // what the other columns leave
		bars = min(max((p.Width-116)/3, trendBarsMin), trendBarsMax)
	}

	what := strings.ToUpper(by)
	if by == "version" {
		what = "TEMPLATE"
	}
	grid := print.NewGrid(p, "~"+what, ">REQUESTS", "TREND", ">ERRORS", ">SCORE", "0..100",
		">P50", "TREND", ">P95", ">P99", ">COST", "TREND", ">TOKENS").Spare("TREND", "0..100", "P99", "TOKENS")
	return statsTable{grid, bars, sums.Progress, cmp.Or(filter.Zone(config.Read(c)), "UTC"), dates(sums),
		wire.ScoreNames(sums.Overall.Scores), false}
}

func (g statsTable) totals(name print.Cell, t wire.Totals, by trends, dates []string) {
	score, spread := g.scoreOf(t.Scores)
	failed := print.Styled(fmt.Sprintf("%.1f%%", 100*t.ErrorRate), print.Unstyled)
	if t.Errors > 0 {
		failed.Style = print.Red
	}

	mark := "" // + marks a sum that further records would raise
	if g.progress.Incomplete {
		mark = "+"
	}

	g.Row(
		name,
		humanize.Comma(t.Requests)+mark,
		print.Styled(trend(by.requests, dates, g.bars, sum), print.Green),
		failed,
		score,
		print.Styled(spread, print.Yellow),
		milliseconds(t.Latency.P50),
		print.Styled(trend(by.latency, dates, g.bars, mean), print.Green),
		milliseconds(t.Latency.P95),
		milliseconds(t.Latency.P99),
		costOf(t, g.progress.Incomplete),
		print.Styled(trend(by.cost, dates, g.bars, sum), print.Green),
		humanize.Comma(t.Tokens())+mark,
	)
}

// finish writes the line of all requests below the table, and what the numbers are of and leave out.
func (g statsTable) finish(sums wire.Analytics) error {
	g.totals(print.Styled("all", print.Bold), sums.Overall, trendsOf(sums), g.dates)
	if err := g.Flush(); err != nil {
		return err
	}

	say := func(format string, args ...any) {
		fmt.Fprintln(g.Out, g.Paint(print.Faint, print.Printable(fmt.Sprintf(format, args...))))
	}
	fmt.Fprintln(g.Out)
	if len(g.dates) > 0 {
		say("From %s to %s, %s.", g.date(g.dates[0]), g.date(g.dates[len(g.dates)-1]), g.zone)
	}
	if len(g.scores) > 0 {
		say("SCORE is the mean of %s where a row names no other, and of how many.", g.scores[0])
	}
	if n := sums.Overall.Unpriced; n > 0 {
		say("Not in the cost, because their price is unknown: %s", humanize.Comma(n))
	}
	if g.bounded {
		say("Only the first %d values are counted; a filter counts others.", valuesMax)
	}
	left := g.Left()
	if left != nil {
		say("This terminal has no room for: %s", strings.Join(left, ", "))
	}
	if !slices.Contains(left, "TREND") {
		say("The trend beside P50 is of the median latency.")
	}
	if sums.Incomplete {
		fmt.Fprintf(g.Out, "Partial result: calls since %s. Numbers with a + are lower bounds.\n",
			g.Moment(g.progress.Since))
	}
	return nil
}

// scoreOf is the mean of a score, of how many it is, and how its values are spread. It is the score that is the most
// frequent of all calls or, named, of these.
func (g statsTable) scoreOf(scores []wire.ScoreSum) (mean, spread string) {
	for _, name := range slices.Concat(g.scores[:min(len(g.scores), 1)], wire.ScoreNames(scores)) {
		i := slices.IndexFunc(scores, func(s wire.ScoreSum) bool { return s.Name == name })
		if i < 0 {
			continue
		}
		var bins []float64
		for _, n := range scores[i].Histogram {
			bins = append(bins, float64(n))
		}
		if mean = fmt.Sprintf("%s (%s)", scores[i], humanize.Comma(scores[i].Count)); name != g.scores[0] {
			mean = name + " " + mean
		}
		return mean, print.Sparks(bins)
	}
	return "-", ""
}

// costOf marks a sum that leaves something out.
func costOf(t wire.Totals, partial bool) string {
	// A sum of nothing would be $0.0000, as if the calls had been free.
	if t.Unpriced == t.Requests {
		return "-"
	}
	s := fmt.Sprintf("$%.4f", t.Cost)
	if t.Cost < 0.01 {
		s = money(&t.Cost)
	}
	if t.Unpriced > 0 || partial {
		s = "≥ " + s
	}
	return s
}

// date is the beginning of an interval: a day as it is, a moment as all times are shown.
func (g statsTable) date(text string) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return g.Painter.Moment(at)
	}
	return text
}

func dates(sums wire.Analytics) []string {
	var all []string
	for _, s := range sums.Stats {
		all = append(all, s.Date)
	}
	return all
}
