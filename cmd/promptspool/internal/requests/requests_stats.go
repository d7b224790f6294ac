package requests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

func statsCommand() *cli.Command {
	flags := config.OfCommand("requests stats", append(filter.Flags(),
		config.ChoiceFlag("by", "version", "by `what`", "version", "model", "provider"),
		config.ChoiceFlag("bucket", "", "`width` of each time bucket, if absent chosen from the time range",
			"second", "minute", "hour", "day"),
	)...)

	return &cli.Command{
		Name:   "stats",
		Usage:  "count: requests, errors, scores, latency, tokens, cost; by template version, model or provider",
		Flags:  append(flags, config.RemoteFlags()...),
		Action: requestStats,
	}
}

func requestStats(c *cli.Context) error {
	v := config.Read(c)
	by, bucket := v.OneOf("by"), v.OneOf("bucket")
	line, selected := filter.Read(v)
	asData := v.AsData()
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	q := wire.StatisticsQuery{FilterGroup: selected.Filter, Q: selected.Words, Bucket: bucket}
	q.Zone = filter.Zone(v)
	// Also for versions, which have no line of all requests.
	sums, err := cl.Analyze(c.Context, id, q)
	if err != nil {
		return err
	}
	var versions wire.TemplateStatistics
	if by == "version" {
		if versions, err = cl.TemplateStatistics(c.Context, id, q); err != nil {
			return err
		}
	}
	switch {
	case asData && by == "version":
		return print.Data(c, versions)
	case asData:
		return print.Data(c, sums)
	case sums.Overall.Requests == 0 && !sums.Incomplete:
		printUnmatched(c, cl, id, line, "requests")
		return nil
	case by == "version":
		return versionTable(c, versions, sums)
	}
	totals, series, latency := sums.ByModel, sums.ModelRequestsByDay, sums.LatencyByModelByDay
	if by == "provider" {
		totals, series, latency = sums.ByProvider, sums.ProviderRequestsByDay, sums.LatencyByProviderByDay
	}
	g := statsGrid(c, map[string]string{"model": "MODEL", "provider": "PROVIDER"}[by], sums.Progress)
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		// The busiest first; names decide among equals, so that two runs look the same.
		return cmp.Or(cmp.Compare(totals[b].Requests, totals[a].Requests), strings.Compare(a, b))
	})
	for _, name := range names {
		t := trends{requests: byName(series[name]), latency: byName(latency[name].P50)}
		g.totals(print.Styled(name, print.Cyan), totals[name], t, dates(sums))
	}
	return g.finish(sums)
}

func versionTable(c *cli.Context, versions wire.TemplateStatistics, sums wire.Analytics) error {
	g := statsGrid(c, "TEMPLATE", sums.Progress)
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
	return g.finish(sums)
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

// statsTable is a grid with a row for each of what is counted.
type statsTable struct {
	*print.Grid
	bars     int // of a trend
	progress wire.Progress
	zone     string // of the dates
}

func statsGrid(c *cli.Context, what string, progress wire.Progress) statsTable {
	p := print.NewPainter(c)
	bars := trendBarsMin
	if p.Width > 0 { // what the other columns leave
		bars = min(max((p.Width-100)/3, trendBarsMin), trendBarsMax)
	}

	grid := print.NewGrid(p, what, ">REQUESTS", "TREND", ">ERRORS", ">SCORE", "0..100",
		">P50", "TREND", ">P95", ">P99", ">COST", "TREND", ">TOKENS")
	return statsTable{grid, bars, progress, cmp.Or(filter.Zone(config.Read(c)), "UTC")}
}

func (g statsTable) totals(name print.Cell, t wire.Totals, by trends, dates []string) {
	score, spread := scoreOf(t.Scores)
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

// finish writes the line of all requests below the table, and what the numbers leave out.
func (g statsTable) finish(sums wire.Analytics) error {
	t := trends{make(map[string]float64), sums.Latency.P50, make(map[string]float64)}
	for _, s := range sums.Stats {
		t.requests[s.Date], t.cost[s.Date] = float64(s.Requests), s.Cost
	}
	g.totals(print.Styled("all", print.Bold), sums.Overall, t, dates(sums))
	if err := g.Flush(); err != nil {
		return err
	}

	if days := dates(sums); len(days) > 0 {
		first, last := print.Printable(days[0]), print.Printable(days[len(days)-1])
		fmt.Fprintf(g.Out, "\n%s\n", g.Paint(print.Faint,
			"From "+first+" to "+last+", "+g.zone+". The trend beside P50 is of the median latency."))
	}
	if n := sums.Overall.Unpriced; n > 0 {
		fmt.Fprintf(g.Out, "%s\n", g.Paint(print.Faint,
			"Not in the cost, because their price is unknown: "+humanize.Comma(n)))
	}
	if sums.Incomplete {
		fmt.Fprintf(g.Out, "Partial result: calls since %s. Numbers with a + are lower bounds.\n",
			g.Moment(g.progress.Since))
	}
	return nil
}

// scoreOf is the mean of the score called default, else of the first, and how its values are spread.
func scoreOf(scores []wire.ScoreSum) (mean, spread string) {
	if len(scores) == 0 {
		return "-", ""
	}
	s := scores[0]
	for _, other := range scores {
		if other.Name == wire.DefaultScoreName {
			s = other
		}
	}
	var bins []float64
	for _, n := range s.Histogram {
		bins = append(bins, float64(n))
	}
	return fmt.Sprintf("%.1f", s.Mean), print.Sparks(bins)
}

// costOf marks a sum that leaves something out.
func costOf(t wire.Totals, partial bool) string {
	// A sum of nothing would be $0.0000, as if the calls had been free.
	if t.Unpriced == t.Requests {
		return "-"
	}
	s := fmt.Sprintf("$%.4f", t.Cost)
	if t.Unpriced > 0 || partial {
		s = "≥ " + s
	}
	return s
}

func dates(sums wire.Analytics) []string {
	var all []string
	for _, s := range sums.Stats {
		all = append(all, s.Date)
	}
	return all
}
