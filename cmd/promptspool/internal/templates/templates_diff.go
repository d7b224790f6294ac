package templates

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

// difference is one template that a push would change.
type difference struct {
	change
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Diff    string `json:"diff"`
}

// diffTemplates exits with --exit-code as diff does: 1 for a difference, 2 where it is not known.
func diffTemplates(c *cli.Context, dir string) error {
	different, err := showDifferences(c, dir)
	switch {
	case !c.Bool("exit-code"):
		return err
	case err != nil:
		return cli.Exit(err, 2)
	case different > 0:
		return cli.Exit("the server does not have "+print.Quantity(different, "template")+" as they are here", 1)
	}
	return nil
}

func showDifferences(c *cli.Context, dir string) (different int, err error) {
	plan, _, _, err := makePlan(c, dir, config.Read(c).List("label"))
	if err != nil {
		return 0, err
	}
	printWarnings(c.App.ErrWriter, planFindings(plan))

	return showPlan(c, plan)
}

// showPlan prints what a push would change, and returns how many templates.
func showPlan(c *cli.Context, plan []change) (different int, err error) {
	differences := []difference{}
	for _, ch := range plan {
		if ch.State == "unchanged" {
			continue
		}

		before, after, err := ch.texts()
		if err != nil {
			return 0, err
		}
		diff := print.LineDiff(before, after)
		added, removed := strings.Count("\n"+diff, "\n+"), strings.Count("\n"+diff, "\n-")
		differences = append(differences, difference{ch, added, removed, diff})
	}

	return len(differences), print.Output(c, differences, func(t *print.Table) {
		printDifferences(t, differences, plan)
	})
}

// printDifferences prints one line for each template, and then the texts that differ.
func printDifferences(t *print.Table, differences []difference, plan []change) {
	if len(differences) > 0 {
		t.Head("STATE", "NAME", ">LATEST", "LINES")
	}
	for _, d := range differences {
		latest, lines := "-", ""
		if d.Latest > 0 {
			latest = strconv.Itoa(d.Latest)
		}
		if d.Added+d.Removed > 0 {
			lines = fmt.Sprintf("+%d -%d", d.Added, d.Removed)
		}
		t.Row(print.Styled(d.State, stateStyles[d.State]), d.Name, latest, lines)
	}
	t.Row(summary(plan, "would be published"))

	for _, d := range differences {
		// A label that moves changes no line.
		if d.Diff != "" {
			printDiff(t.Painter, d)
		}
	}
}

// printDiff prints the changed lines of one template, as diff -u does.
func printDiff(p print.Painter, d difference) {
	old := "/dev/null"
	if d.Latest > 0 && d.State != "restored" {
		old = fmt.Sprintf("%s, version %d", d.Name, d.Latest)
	}
	fmt.Fprintf(p.Out, "\n%s\n%s\n",
		p.Paint(print.Bold, "--- "+print.Printable(old)),
		p.Paint(print.Bold, "+++ "+print.Printable(d.File)))

	p.Diff(d.Diff)
}
