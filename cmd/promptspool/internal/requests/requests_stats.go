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

		g := statsTable{Table: t, dated: bucket != "", sums: sums, scores: wire.ScoreNames(sums.Overall.Scores)}
		g.head(by)
		for _, v := range parts.Items {
			name := cmp.Or(v.Value, "unknown")
			switch {
			case v.Version != nil:
				name += "@" + strconv.Itoa(*v.Version)
			case by == "version":
				name += "@?"
			}
			g.totals(print.Styled(name, print.Cyan), v.Totals, v.Series)
		}
		g.totals(print.Styled("all", print.Bold), sums.Overall, sums.Series())
		g.notes(parts.LeftOut, cmp.Or(q.Zone, "UTC"))
	})
}

// statsTable is a table with a row for each of what is counted and, if it is dated, for each of its intervals.
type statsTable struct {
	*print.Table
	dated  bool
	sums   wire.Analytics // of all
	scores []string       // by name, the most frequent first, which is the one that rows have
}

func (g statsTable) head(by string) {
	title := strings.NewReplacer(".", " ", "_", " ").Replace(by)
	if by == "version" {
		title = "template"
	}
	names := []string{"~" + strings.ToUpper(title), ">REQUESTS", ">ERRORS", ">SCORE", ">P50", ">P95", ">P99",
		">COST", ">TOKENS"}
	if g.dated {
		names = slices.Insert(names, 1, "DATE")
	}
	g.Head(names...).Spare("P99", "TOKENS", "P50")
}

// totals adds a row for what is counted, and those of its intervals.
func (g statsTable) totals(name print.Cell, all wire.Totals, series []wire.BucketTotals) {
	g.row(name, "", all)
	for _, b := range series {
		if g.dated {
			g.row(name, g.date(b.Date), b.Totals)
		}
	}
}

// date is the beginning of an interval: a day as it is, a moment as all times are shown.
func (g statsTable) date(text string) string {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return g.Painter.Moment(at)
	}
	return text
}

func (g statsTable) row(name print.Cell, date string, t wire.Totals) {
	failed := print.Styled(fmt.Sprintf("%.1f%%", 100*t.ErrorRate), print.Unstyled)
	if t.Errors > 0 {
		failed.Style = print.Red
	}
	// A + marks a sum that further records would raise.
	mark := ""
	if g.sums.Incomplete {
		mark = "+"
	}

	cells := []any{
		name, humanize.Comma(t.Requests) + mark, failed, g.score(t.Scores), latency(t.Latency.P50),
		latency(t.Latency.P95), latency(t.Latency.P99), costOf(t, g.sums.Incomplete), humanize.Comma(t.Tokens()) + mark,
	}
	if g.dated {
		cells = slices.Insert(cells, 1, any(date))
	}
	g.Row(cells...)
}

// notes adds below the table what the numbers are of and leave out.
func (g statsTable) notes(leftOut int64, zone string) {
	say := func(format string, args ...any) { g.Row(print.Styled(fmt.Sprintf(format, args...), print.Faint)) }
	g.Row()
	if stats := g.sums.Stats; len(stats) > 0 {
		say("From %s to %s, %s.", g.date(stats[0].Date), g.date(stats[len(stats)-1].Date), zone)
	}
	if len(g.scores) > 0 {
		say("SCORE is %s where a row names no other, and of how many.", g.scores[0])
	}
	if unpriced := g.sums.Overall.Unpriced; unpriced > 0 {
		say("Not in the cost, because their price is unknown: %s", humanize.Comma(unpriced))
	}
	if leftOut > 0 {
		say("Calls of values that are not listed: %s; a filter counts them.", humanize.Comma(leftOut))
	}
	if g.sums.Incomplete {
		g.Row(fmt.Sprintf("Partial result: calls since %s. Numbers with a + are lower bounds.", g.Moment(g.sums.Since)))
	}
}

// score is the mean of a score, and of how many it is. It is the score that is the most frequent of all calls or,
// named, of these.
func (g statsTable) score(scores []wire.ScoreSum) string {
	for _, name := range slices.Concat(g.scores[:min(len(g.scores), 1)], wire.ScoreNames(scores)) {
		s := wire.SumOf(scores, name)
		if s == nil {
			continue
		}
		mean := fmt.Sprintf("%s (%s)", s, humanize.Comma(s.Count))
		if name != g.scores[0] {
			mean = name + " " + mean
		}
		return mean
	}
	return "-"
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
