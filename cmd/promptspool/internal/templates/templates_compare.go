package templates

import (
	"cmp"
	"fmt"

	"github.com/urfave/cli/v2"

	"promptspool/api/dashboard/number"
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

	var q wire.PartsQuery
	q.FilterGroup, q.Zone = selected, filter.Zone(v)
	for _, version := range args[1:] {
		raw, err := cl.Raw(c.Context, id, args[0], wire.ParseSelector(version))
		if err != nil {
			return err
		}
		q.Template, q.Compare = raw.Name, append(q.Compare, raw.Version)
	}
	found, err := cl.Statistics(c.Context, id, q)
	if err != nil {
		return err
	}

	answer := cmp.Or(found.Comparison, &wire.VersionComparison{})
	return print.Output(c, answer, func(t *print.Table) {
		t.Head("METRIC", fmt.Sprint(">VERSION ", answer.A.Version), fmt.Sprint(">VERSION ", answer.B.Version),
			">DIFFERENCE", "95% INTERVAL", "VERDICT").Spare("95% INTERVAL")
		for _, m := range answer.Metrics {
			if shown := number.OfMetric(m); m.CountA+m.CountB > 0 {
				t.Row(shown.Title, shown.A, shown.B, shown.Difference, shown.Interval, shown.Verdict)
			}
		}
		t.Row(answer.Note)
		t.Row(callsText(answer.A) + "; " + callsText(answer.B) + ".")
	})
}

// callsText returns how many calls of a version were compared.
func callsText(v wire.ComparedCalls) string {
	text := fmt.Sprintf("%s of version %d", print.Quantity(v.Requests, "call"), v.Version)
	if v.Incomplete {
		text += ", the newest only"
	}

	return text
}
