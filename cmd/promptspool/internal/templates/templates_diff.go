package templates

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func diffCommand() *cli.Command {
	return config.Command("diff DIR", "show what `templates push` would change", diffTemplates, []cli.Flag{
		config.ListFlag("label", "a `label` to give to what is pushed; repeatable"),
		config.SwitchFlag("exit-code", "fail, with exit code 1, if anything would be published"),
	}, config.RemoteFlags())
}

// difference is one template that a push would change.
type difference struct {
	change
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Diff    string `json:"diff"`
}

func diffTemplates(c *cli.Context) error {
	dir, err := config.Argument(c, "the folder of templates")
	if err != nil {
		return err
	}
	plan, _, _, err := makePlan(c, dir, config.Read(c).List("label"))
	if err != nil {
		return err
	}
	printWarnings(c.App.ErrWriter, planFindings(plan))

	return showPlan(c, plan)
}

// showPlan prints what a push would change.
func showPlan(c *cli.Context, plan []change) error {
	differences := []difference{}
	for _, ch := range plan {
		if ch.State == "unchanged" {
			continue
		}

		before, after, err := ch.texts()
		if err != nil {
			return err
		}
		d := difference{change: ch}
		d.Diff, d.Added, d.Removed = lineDiff(before, after)
		differences = append(differences, d)
	}

	var err error
	if config.Read(c).AsData() {
		err = print.Data(c, differences)
	} else {
		err = printDifferences(print.NewPainter(c), differences, len(plan))
	}
	if err == nil && len(differences) > 0 && c.Bool("exit-code") {
		err = fmt.Errorf("the server does not have %s as they are here", print.Quantity(len(differences), "template"))
	}
	return err
}

// printDifferences prints one line for each template, and then the texts that differ.
func printDifferences(p print.Painter, differences []difference, total int) error {
	g := print.NewGrid(p, "STATE", "NAME", ">LATEST", "LINES")
	for _, d := range differences {
		latest, lines := "-", ""
		if d.Latest > 0 {
			latest = strconv.Itoa(d.Latest)
		}
		if d.Added+d.Removed > 0 {
			lines = fmt.Sprintf("+%d -%d", d.Added, d.Removed)
		}
		g.Row(print.Styled(d.State, stateStyles[d.State]), d.Name, latest, lines)
	}
	if len(differences) > 0 {
		if err := g.Flush(); err != nil {
			return err
		}
	}

	fmt.Fprintf(p.Out, "%d of %d templates would be published.\n", len(differences), total)

	for _, d := range differences {
		// A label that moves changes no line.
		if d.Diff != "" {
			printDiff(p, d)
		}
	}
	return nil
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

	styles := map[byte]print.Style{'+': print.Green, '-': print.Red, '@': print.Cyan}
	for line := range strings.SplitSeq(strings.TrimSuffix(d.Diff, "\n"), "\n") {
		first := cmp.Or(line, " ")[0]
		fmt.Fprintln(p.Out, p.Paint(styles[first], print.Printable(line)))
	}
}
