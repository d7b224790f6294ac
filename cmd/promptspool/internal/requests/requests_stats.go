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

// statsDimensions are what statistics can be by.
var statsDimensions = []string{"version", "model", "provider", "tag", "user", "session", "environment",
	"metadata." + config.AnyName}

func requestStats(c *cli.Context) error {
	v := config.Read(c)
	by, bucket := v.OneOf("by"), v.OneOf("bucket")
	key, isKey := strings.CutPrefix(by, "metadata.")
	line, selected := filter.Read(v)
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

	var versions wire.TemplateStatistics
	var values []valueTotals
	var shown any
	if by == "version" {
		versions, err = cl.TemplateStatistics(c.Context, id, q)
		shown = versions
	} else {
		values, err = countEach(c, cl, id, q, valuesBy(by, key, sums))
		shown = map[string][]valueTotals{"items": values}
	}
	if err != nil {
		return err
	}
	return print.Output(c, shown, func(t *print.Table) {
		switch {
		case sums.Incomplete:
		case sums.Overall.Requests == 0:
			printUnmatched(c, t, cl, id, line, "requests")
			return
		case isKey && len(values) == 0:
			line.Terms = append(line.Terms, filterline.Where("metadata", key, "*"))
			printUnmatched(c, t, cl, id, line, "requests with "+by)
			return
		}
		g := newStatsTable(c, t, by, sums)
		g.versions(versions)
		g.values(values)
		g.finish(len(values))
	})
}

// valuesMax is how many values are counted, each by one call.
const valuesMax = 20

// valueTotals are the totals of one value, such as a tag.
type valueTotals struct {
	Value string `json:"value"`
	wire.Totals
	sums wire.Analytics
}

// valuesBy returns conditions for the values that requests are counted by.
func valuesBy(by, key string, sums wire.Analytics) (terms []filterline.Term) {
	field, part, _ := strings.Cut(by, ".")
	var values []string
	switch by {
	case "model":
		values = mostFirst(sums.ByModel)
	case "provider":
		values = mostFirst(sums.ByProvider)
	case "tag":
		for _, t := range sums.TagsBreakdown {
			values = append(values, t.Tag)
		}
	}

	for _, value := range values {
		terms = append(terms, filterline.Where(field, part, value))
	}
	for _, m := range sums.MetadataValueBreakdown {
		term := filterline.Where(field, part, m.Value)
		if m.Truncated {
			term = term.With(filterline.Begins)
		}
		if key != "" && m.Key == key {
			terms = append(terms, term)
		}
	}
	return terms[:min(len(terms), valuesMax)]
}

// mostFirst returns names, those of the most requests first.
func mostFirst(totals map[string]wire.Totals) []string {
	return slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b].Requests, totals[a].Requests), cmp.Compare(a, b))
	})
}

// countEach counts the requests of each condition, those of the most first.
func countEach(
	c *cli.Context, cl *client.Client, id wire.Identity, q wire.StatisticsQuery, terms []filterline.Term,
) ([]valueTotals, error) {
	all := []valueTotals{}
	progress := print.NewProgress(c, "Counting", "values", int64(len(terms)))
	defer progress.End()
	for _, term := range terms {
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
	slices.SortStableFunc(all, func(a, b valueTotals) int { return cmp.Compare(b.Requests, a.Requests) })
	return all, nil
}

// values adds a row for each value.
func (g statsTable) values(all []valueTotals) {
	for _, v := range all {
		g.totals(print.Styled(v.Value, print.Cyan), v.Totals, trendsOf(v.sums), g.dates)
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
}

// trends are what a row draws, by date. The latency is the median.
type trends struct{ requests, latency, cost map[string]float64 }

// trendsOf are the trends of everything that an answer counts.
func trendsOf(sums wire.Analytics) trends {
	t := trends{make(map[string]float64), sums.Latency.P50, make(map[string]float64)}
	for _, s := range sums.Stats {
		t.requests[s.Date], t.cost[s.Date] = float64(s.Requests), s.Cost
	}
	return t
}

// statsTable is a table with a row for each of what is counted.
type statsTable struct {
	*print.Table
	sums   wire.Analytics // of all
	bars   int            // of a trend
	zone   string         // of the dates
	dates  []string       // of trends
	scores []string       // by name, the most frequent first, which is the one that rows have
}

func newStatsTable(c *cli.Context, t *print.Table, by string, sums wire.Analytics) statsTable {
	bars := trendBarsMin
	if t.Width > 0 { // what the other columns leave
		bars = min(max((t.Width-116)/3, trendBarsMin), trendBarsMax)
	}
	if by == "version" {
		by = "template"
	}
	by = strings.NewReplacer(".", " ", "_", " ").Replace(by)
	t.Head("~"+strings.ToUpper(by), ">REQUESTS", "TREND", ">ERRORS", ">SCORE", "0..100",
		">P50", "TREND", ">P95", ">P99", ">COST", "TREND", ">TOKENS").Spare("TREND", "0..100", "P99", "TOKENS")

	var dates []string
	for _, s := range sums.Stats {
		dates = append(dates, s.Date)
	}
	return statsTable{t, sums, bars, cmp.Or(filter.Zone(config.Read(c)), "UTC"), dates,
		wire.ScoreNames(sums.Overall.Scores)}
}

func (g statsTable) totals(name print.Cell, t wire.Totals, by trends, dates []string) {
	score, spread := g.scoreOf(t.Scores)
	failed := print.Styled(fmt.Sprintf("%.1f%%", 100*t.ErrorRate), print.Unstyled)
	if t.Errors > 0 {
		failed.Style = print.Red
	}

	mark := "" // + marks a sum that further records would raise
	if g.sums.Incomplete {
		mark = "+"
	}

	g.Row(
		name,
		humanize.Comma(t.Requests)+mark,
		print.Styled(trend(by.requests, dates, g.bars, sum), print.Green),
		failed,
		score,
		print.Styled(spread, print.Yellow),
		latency(t.Latency.P50),
		print.Styled(trend(by.latency, dates, g.bars, mean), print.Green),
		latency(t.Latency.P95),
		latency(t.Latency.P99),
		costOf(t, g.sums.Incomplete),
		print.Styled(trend(by.cost, dates, g.bars, sum), print.Green),
		humanize.Comma(t.Tokens())+mark,
	)
}

// finish adds the row of all requests, and below the table what the numbers are of and leave out.
func (g statsTable) finish(counted int) {
	all := g.sums.Overall
	g.totals(print.Styled("all", print.Bold), all, trendsOf(g.sums), g.dates)
	_ = g.Flush() // which finds out what is left out, and keeps an error
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
	if counted == valuesMax {
		say("Only the first %d values are counted; a filter counts others.", valuesMax)
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
		if mean = fmt.Sprintf("%s (%s)", s, humanize.Comma(s.Count)); name != g.scores[0] {
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

// trend draws a series, the oldest on the left.
//
// A server leaves out parts without requests, so the time between two dates may be empty.
func trend(points map[string]float64, dates []string, bars int, join func([]float64) float64) string {
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
	for date, n := range points {
		i := 0
		if span := last.Sub(first); span > 0 {
			i = int(float64(at(date).Sub(first)) / float64(span) * float64(width-1))
		}
		i = min(max(i, 0), width-1)
		parts[i] = append(parts[i], n)
	}

	heights := make([]float64, width)
	for i := range parts {
		heights[i] = join(parts[i])
	}
	return print.Sparks(heights)
}
