package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func statsCommand() *cli.Command {
	return &cli.Command{
		Name: "stats", Usage: "count: requests, errors, scores, latency, tokens, cost; by template version, model or provider",
		Flags: append(own("requests stats", append(filterFlags(),
			stringFlag("by", "version", "by `what`: version, model or provider"),
			stringFlag("bucket", "", "how long a part of the series is: `second`, minute, hour or day; as the time demands if nothing is said"))...), remoteFlags()...),
		Action: requestStats,
	}
}

func requestStats(c *cli.Context) error {
	by := text(c, "by")
	if !slices.Contains([]string{"version", "model", "provider"}, by) {
		return wrong(c, "by", by, "is not one of version, model, provider")
	}
	cl, id, err := remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	where, words, err := filter(c)
	if err != nil {
		return err
	}
	q := wire.StatisticsQuery{FilterGroup: where, Q: words, Bucket: text(c, "bucket")}
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
	case text(c, "output") != "table" && by == "version":
		return output(c, versions, nil)
	case text(c, "output") != "table":
		return output(c, sums, nil)
	case by == "version":
		return versionTable(c, versions, sums)
	}
	totals, series := sums.ByModel, sums.ModelRequestsByDay
	if by == "provider" {
		totals, series = sums.ByProvider, sums.ProviderRequestsByDay
	}
	g := statsGrid(c, map[string]string{"model": "MODEL", "provider": "PROVIDER"}[by])
	names := slices.SortedFunc(maps.Keys(totals), func(a, b string) int { return int(totals[b].Requests - totals[a].Requests) })
	for _, name := range names {
		points := make(map[string]float64)
		for _, p := range series[name] {
			points[p.Name] = p.Value
		}
		statsRow(g, name, totals[name], trend(points, dates(sums)))
	}
	return finishStats(c, g, sums)
}

func versionTable(c *cli.Context, versions wire.TemplateStatistics, sums wire.Analytics) error {
	g := statsGrid(c, "TEMPLATE")
	all := make(map[string]bool)
	for _, v := range versions.Versions {
		for _, b := range v.Series {
			all[b.Date] = true
		}
	}
	order := slices.Sorted(maps.Keys(all))
	for _, v := range versions.Versions {
		points := make(map[string]float64)
		for _, b := range v.Series {
			points[b.Date] = float64(b.Requests)
		}
		name := v.Template + "@?"
		if v.Version != nil {
			name = v.Template + "@" + strconv.Itoa(*v.Version)
		}
		statsRow(g, name, v.Totals, trend(points, order))
	}
	if len(versions.Versions) == 0 {
		g.row(cell{"(no request has a template)", faint}, "", "", "", "", "", "", "", "", "", "")
	}
	return finishStats(c, g, sums)
}

func statsGrid(c *cli.Context, what string) *grid {
	return newGrid(newPainter(c), what, ">REQUESTS", ">ERRORS", ">SCORE", "0..100", ">P50", ">P95", ">P99", ">TOKENS", ">COST", "TREND")
}

func statsRow(g *grid, name string, t wire.Totals, trend string) {
	score, spread := scoreOf(t.Scores)
	failed := cell{fmt.Sprintf("%.1f%%", 100*t.ErrorRate), unstyled}
	if t.Errors > 0 {
		failed.style = red
	}
	g.row(cell{name, cyan}, humanize.Comma(t.Requests), failed, score, cell{spread, yellow},
		milliseconds(t.Latency.P50), milliseconds(t.Latency.P95), milliseconds(t.Latency.P99),
		humanize.Comma(t.InputTokens+t.OutputTokens), costOf(t), cell{trend, green})
}

// finishStats writes the line of everything below the table, and what the numbers leave out.
func finishStats(c *cli.Context, g *grid, sums wire.Analytics) error {
	points := make(map[string]float64)
	for _, s := range sums.Stats {
		points[s.Date] = float64(s.Requests)
	}
	statsRow(g, "all", sums.Overall, trend(points, dates(sums)))
	g.rows[len(g.rows)-1][0].style = bold
	if err := g.flush(); err != nil {
		return err
	}
	if n := sums.Overall.Unpriced; n > 0 {
		fmt.Fprintf(g.w, "\n%s\n", g.paint(faint, humanize.Comma(n)+" requests have no known price and are not in the cost."))
	}
	if sums.Incomplete {
		fmt.Fprintln(g.w, "\nTime ran out while looking into texts: older records are not counted.")
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
	return fmt.Sprintf("%.1f", s.Mean), sparks(bins)
}

// costOf marks a sum that leaves something out.
func costOf(t wire.Totals) string {
	if t.Unpriced == t.Requests {
		return "-"
	}
	s := fmt.Sprintf("$%.4f", t.Cost)
	if t.Unpriced > 0 {
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

// trendWidth is how many bars a trend has at most; more parts are summed up.
const trendWidth = 24

// trend draws a series, oldest left. Parts without requests lie between those of dates as they come: a server leaves them out.
func trend(points map[string]float64, dates []string) string {
	if len(dates) == 0 {
		return ""
	}
	at := func(s string) time.Time {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t
		}
		t, _ := time.Parse(time.DateOnly, s)
		return t
	}
	first, last := at(dates[0]), at(dates[len(dates)-1])
	step := last.Sub(first)
	for i := 1; i < len(dates); i++ {
		step = min(step, at(dates[i]).Sub(at(dates[i-1])))
	}
	width := 1
	if step > 0 {
		width = int(min(last.Sub(first)/step+1, trendWidth))
	}
	bars := make([]float64, width)
	for date, n := range points {
		i := 0
		if span := last.Sub(first); span > 0 {
			i = int(at(date).Sub(first) * time.Duration(width-1) / span)
		}
		bars[min(max(i, 0), width-1)] += n
	}
	return sparks(bars)
}
