package templates

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/filter"
	"promptspool/cmd/promptspool/internal/print"
)

func compareCommand() *cli.Command {
	return &cli.Command{
		Name: "compare",
		Usage: "compare two versions by their calls: `compare NAME A B`, each a version's number or a label; " +
			"`promptspool docs scores` explains the verdicts",
		ArgsUsage: "NAME A B",
		Flags:     append(config.OfCommand("templates compare", filter.Flags()...), config.RemoteFlags()...),
		Action:    compareVersions,
	}
}

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

	q := wire.ComparisonQuery{FilterGroup: selected.Filter, Q: selected.Words}
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
	if v.AsJSON() {
		return print.JSON(c.App.Writer, answer)
	}

	return printComparison(print.NewPainter(c), answer)
}

func printComparison(p print.Painter, answer wire.VersionComparison) error {
	g := print.NewGrid(p, "METRIC", fmt.Sprint(">VERSION ", answer.A.Version),
		fmt.Sprint(">VERSION ", answer.B.Version), ">DIFFERENCE", "95% INTERVAL", "VERDICT")
	for _, m := range answer.Metrics {
		if m.CountA+m.CountB == 0 {
			continue
		}
		show := func(x float64) string { return metricText(m.Metric, x) }
		a, b, difference, interval := "-", "-", "-", "-"
		if m.CountA > 0 {
			a = show(m.A)
		}
		if m.CountB > 0 {
			b = show(m.B)
		}
		if m.CountA > 0 && m.CountB > 0 {
			difference = signed(m.B-m.A, show)
		}
		if m.Low != nil {
			interval = signed(*m.Low, show) + " to " + signed(*m.High, show)
		}

		verdict, style := strings.ReplaceAll(m.Verdict, "_", " "), print.Faint
		switch m.Verdict {
		case wire.VerdictBetter:
			style = print.Green
		case wire.VerdictWorse:
			style = print.Red
		case wire.VerdictTooFew:
			verdict += ", " + humanize.Comma(m.Needed) + " more of each needed"
		case wire.VerdictNoDifference:
			verdict += " shown"
		}
		g.Row(cmp.Or(m.Name, m.Metric), a, b, difference, interval, print.Styled(verdict, style))
	}
	if err := g.Flush(); err != nil {
		return err
	}

	facts := []string{}
	for _, v := range []wire.ComparedCalls{answer.A, answer.B} {
		fact := print.Quantity(v.Requests, "call") + fmt.Sprint(" of version ", v.Version)
		if v.Incomplete {
			fact += ", the newest only"
		}
		facts = append(facts, fact)
	}
	fmt.Fprintf(p.Out, "\n%s\n", p.Paint(print.Faint, strings.Join(facts, "; ")+"."))

	return nil
}

// metricText returns a value of a metric with its unit.
func metricText(metric string, x float64) string {
	switch metric {
	case "errors":
		return fmt.Sprintf("%.1f%%", 100*x)
	case "cost":
		return fmt.Sprintf("$%.6f", x)
	case "latency_p50", "latency_p95":
		return fmt.Sprintf("%.3fs", x)
	}

	return fmt.Sprintf("%.1f", x)
}

// signed returns a difference with its sign.
func signed(x float64, show func(float64) string) string {
	if x < 0 {
		return "-" + show(math.Abs(x))
	}
	return "+" + show(x)
}
