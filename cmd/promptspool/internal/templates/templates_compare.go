package templates

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

func compareVersions(c *cli.Context) error {
	args, v := c.Args().Slice(), config.Read(c)
	if len(args) != 3 {
		return config.Usagef(c, "give a template's name, and two versions or labels")
	}
	_, selected := filter.Read(v)
	cl, id, err := v.Remote()
	if err != nil {
		return err
	}

	q := wire.ComparisonQuery{FilterGroup: selected}
	for i, version := range []*int{&q.VersionA, &q.VersionB} {
		selector := wire.Selector{Label: args[1+i]}
		if n, err := strconv.Atoi(args[1+i]); err == nil {
			selector = wire.Selector{Version: n}
		}
		raw, err := cl.Raw(c.Context, id, args[0], selector)
		if err != nil {
			return err
		}
		q.Template, *version = raw.Name, raw.Version
	}
	answer, err := cl.CompareVersions(c.Context, id, q)
	if err != nil {
		return err
	}

	return print.Output(c, answer, func(t *print.Table) {
		t.Head("METRIC", fmt.Sprint(">VERSION ", answer.A.Version), fmt.Sprint(">VERSION ", answer.B.Version),
			">DIFFERENCE", "95% INTERVAL", "VERDICT").Spare("95% INTERVAL")
		for _, m := range answer.Metrics {
			if m.CountA+m.CountB > 0 {
				t.Row(comparedCells(m)...)
			}
		}
		t.Row(callsText(answer.A) + "; " + callsText(answer.B) + ".")
	})
}

// comparedCells returns the row of a metric. Where a version has no value, its cells have a dash.
func comparedCells(m wire.ComparedMetric) []any {
	format, times := "%.1f", 1.0
	switch m.Metric {
	case "errors":
		format, times = "%.1f%%", 100
	case "cost":
		format = "%.6f USD"
	case "latency_p50", "latency_p95":
		format = "%.3f s"
	}
	value := func(x float64) string { return fmt.Sprintf(format, times*x) }
	if m.IsShareOfTrue() {
		format, times, value = "%.1f%%", 100, wire.TrueShare
	}
	signed := strings.Replace(format, "%", "%+", 1)
	cells := []any{cmp.Or(m.Name, m.Metric), "-", "-", "-", "-", strings.ReplaceAll(m.Verdict, "_", " ")}
	if m.CountA > 0 {
		cells[1] = value(m.A)
	}
	if m.CountB > 0 {
		cells[2] = value(m.B)
	}
	if m.CountA > 0 && m.CountB > 0 {
		cells[3] = fmt.Sprintf(signed, times*(m.B-m.A))
	}
	if m.Low != nil {
		cells[4] = fmt.Sprintf(signed+" to "+signed, times**m.Low, times**m.High)
	}
	if m.Verdict == wire.VerdictTooFew {
		cells[5] = "too few, " + humanize.Comma(m.Needed) + " more of each needed"
	}

	return cells
}

// callsText returns how many calls of a version were compared.
func callsText(v wire.ComparedCalls) string {
	text := fmt.Sprintf("%s of version %d", print.Quantity(v.Requests, "call"), v.Version)
	if v.Incomplete {
		text += ", the newest only"
	}

	return text
}
