package requests

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

// statsDimensions are what statistics can be by.
var statsDimensions = []string{"version", "model", "provider", "status", "tag", "user", "session", "environment",
	wire.ByMetadata + config.AnyName}

// knownKeys are metadata keys by the shorter names that they have here.
var knownKeys = map[string]string{"user": "user_id", "session": "session_id", "environment": "environment"}

func requestStats(c *cli.Context) error {
	v := config.Read(c)
	by, bucket := v.OneOf("by"), v.OneOf("bucket")
	line, selected := filter.Read(v)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	q := wire.PartsQuery{By: by}
	q.FilterGroup, q.Bucket, q.Zone = selected, bucket, filter.Zone(v)
	if key, ok := knownKeys[by]; ok {
		q.By = wire.ByMetadata + key
	}
	// Calls without a value are in no row but the one of all.
	sums, err := cl.Analyze(c.Context, id, q.StatisticsQuery)
	if err != nil {
		return err
	}
	parts, err := cl.Statistics(c.Context, id, q)
	if err != nil {
		return err
	}

	return print.Output(c, parts, func(t *print.Table) {
		switch {
		case sums.Incomplete:
		case sums.Overall.Requests == 0:
			t.Row(unmatched(line, "requests"))
			return
		case strings.HasPrefix(by, wire.ByMetadata) && len(parts.Items) == 0:
			t.Row(unmatched(line, "requests with "+by))
			return
		}

		g := newStatsTable(c, t, by, sums)
		g.values(parts.Items)
		g.finish(parts)
	})
}

// values adds a row for each value.
func (g statsTable) values(all []wire.ValueTotals) {
	// Not all have all dates, and their trends must be aligned.
	var series []wire.BucketTotals
	for _, v := range all {
		series = append(series, v.Series...)
	}

	dates := datesOf(series)
	for _, v := range all {
		name := cmp.Or(v.Value, "unknown")
		switch {
		case v.Version != nil:
			name += "@" + strconv.Itoa(*v.Version)
		case g.by == "version":
			name += "@?"
		}
		g.totals(print.Styled(name, print.Cyan), v.Totals, v.Series, dates)
	}
}

func datesOf(series []wire.BucketTotals) (dates []string) {
	for _, b := range series {
		dates = append(dates, b.Date)
	}
	slices.Sort(dates)

	return slices.Compact(dates)
}

// statsTable is a table with a row for each of what is counted.
type statsTable struct {
	*print.Table
	by     string
	sums   wire.Analytics      // of all
	series []wire.BucketTotals // of all
	dates  []string            // of all
	bars   int                 // of a trend
	zone   string              // of the dates
	scores []string            // by name, the most frequent first, which is the one that rows have
}

func newStatsTable(c *cli.Context, t *print.Table, by string, sums wire.Analytics) statsTable {
	bars := trendBarsMin
	// A trend takes what the other columns leave.
	if t.Width > 0 {
		bars = min(max((t.Width-116)/3, trendBarsMin), trendBarsMax)
	}
	title := strings.NewReplacer(".", " ", "_", " ").Replace(by)
	if by == "version" {
		title = "template"
	}
	t.Head("~"+strings.ToUpper(title), ">REQUESTS", "TREND", ">ERRORS", ">SCORE", "0..100",
		">P50", "TREND", ">P95", ">P99", ">COST", "TREND", ">TOKENS").Spare("TREND", "0..100", "P99", "TOKENS")

	series := sums.Series()
	return statsTable{t, by, sums, series, datesOf(series), bars, cmp.Or(filter.Zone(config.Read(c)), "UTC"),
		wire.ScoreNames(sums.Overall.Scores)}
}

func (g statsTable) totals(name print.Cell, t wire.Totals, series []wire.BucketTotals, dates []string) {
	trend := func(value func(t *wire.Totals) *float64, join func([]float64) float64) print.Cell {
		return print.Styled(trend(series, value, dates, g.bars, join), print.Green)
	}
	score, spread := g.scoreOf(t.Scores)
	failed := print.Styled(fmt.Sprintf("%.1f%%", 100*t.ErrorRate), print.Unstyled)
	if t.Errors > 0 {
		failed.Style = print.Red
	}

	// A + marks a sum that further records would raise.
	mark := ""
	if g.sums.Incomplete {
		mark = "+"
	}

	g.Row(
		name,
		humanize.Comma(t.Requests)+mark,
		trend(func(t *wire.Totals) *float64 { return new(float64(t.Requests)) }, sum),
		failed,
		score,
		print.Styled(spread, print.Yellow),
		latency(t.Latency.P50),
		trend(func(t *wire.Totals) *float64 { return t.Latency.P50 }, mean),
		latency(t.Latency.P95),
		latency(t.Latency.P99),
		costOf(t, g.sums.Incomplete),
		trend(func(t *wire.Totals) *float64 { return &t.Cost }, sum),
		humanize.Comma(t.Tokens())+mark,
	)
}

// finish adds the row of all requests, and below the table what the numbers are of and leave out.
func (g statsTable) finish(parts wire.Statistics) {
	all := g.sums.Overall
	g.totals(print.Styled("all", print.Bold), all, g.series, g.dates)
	// Flush finds out what is left out, and keeps an error.
	_ = g.Flush()
	left := g.Left()

	say := func(format string, args ...any) { g.Row(print.Styled(fmt.Sprintf(format, args...), print.Faint)) }
	g.Row()
	if len(g.dates) > 0 {
		say("From %s to %s, %s.", g.date(g.dates[0]), g.date(g.dates[len(g.dates)-1]), g.zone)
	}
	if len(g.scores) > 0 {
		say("SCORE is %s where a row names no other, and of how many.", g.scores[0])
	}
	if all.Unpriced > 0 {
		say("Not in the cost, because their price is unknown: %s", humanize.Comma(all.Unpriced))
	}
	if parts.LeftOut > 0 {
		say("Calls of values that are not listed: %s; a filter counts them.", humanize.Comma(parts.LeftOut))
	}
	if left != nil {
		say("This terminal has no room for: %s", strings.Join(left, ", "))
	}
	if !slices.Contains(left, "TREND") {
		say("The trend beside P50 is of the median latency.")
	}
	if g.sums.Incomplete {
		g.Row(fmt.Sprintf("Partial result: calls since %s. Numbers with a + are lower bounds.", g.Moment(g.sums.Since)))
	}
}

// scoreOf is the mean of a score, of how many it is, and how its values are spread. It is the score that is the most
// frequent of all calls or, named, of these.
func (g statsTable) scoreOf(scores []wire.ScoreSum) (mean, spread string) {
	for _, name := range slices.Concat(g.scores[:min(len(g.scores), 1)], wire.ScoreNames(scores)) {
		s := wire.SumOf(scores, name)
		if s == nil {
			continue
		}
		var bins []float64
		for _, n := range s.Histogram {
			bins = append(bins, float64(n))
		}
		mean = fmt.Sprintf("%s (%s)", s, humanize.Comma(s.Count))
		if name != g.scores[0] {
			mean = name + " " + mean
		}
		return mean, print.Sparks(bins)
	}
	return "-", ""
}

// costOf marks a sum that leaves something out.
func costOf(t wire.Totals, partial bool) string {
	// A sum of nothing would be $0.00, as if the calls had been free.
	if t.Priced() == 0 {
		return "-"
	}
	s := money(&t.Cost)
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

// How many bars a trend has; more parts than that go into one bar.
const (
	trendBarsMin = 8
	trendBarsMax = 24
)

// How the parts in one bar become one number.
func sum(parts []float64) (n float64) {
	for _, p := range parts {
		n += p
	}
	return n
}

func mean(parts []float64) float64 { return sum(parts) / float64(max(len(parts), 1)) }

// trend draws a number of a series, the oldest on the left.
//
// A server leaves out parts without requests, so the time between two dates may be empty.
func trend(
	series []wire.BucketTotals, value func(t *wire.Totals) *float64,
	dates []string, bars int, join func([]float64) float64,
) string {
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
		width = int(min(last.Sub(first)/step+1, time.Duration(bars)))
	}

	parts := make([][]float64, width)
	for _, b := range series {
		i := 0
		if span := last.Sub(first); span > 0 {
			i = int(float64(at(b.Date).Sub(first)) / float64(span) * float64(width-1))
		}
		if n := value(&b.Totals); n != nil {
			i = min(max(i, 0), width-1)
			parts[i] = append(parts[i], *n)
		}
	}

	heights := make([]float64, width)
	for i := range parts {
		heights[i] = join(parts[i])
	}
	return print.Sparks(heights)
}
