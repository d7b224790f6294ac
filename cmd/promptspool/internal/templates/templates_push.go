package templates

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func pushCommand() *cli.Command {
	return &cli.Command{
		Name: "push", Usage: "publish what changed in a folder of templates; a bad file stops everything before anything is published", ArgsUsage: "DIR",
		Flags: append(config.OfCommand("templates push",
			config.TextFlag("message", "", "the `text` of the commit message of what is published"),
			config.ListFlag("label", "a `label` that is to point to what the folder holds, of every template in it; repeatable"),
			config.SwitchFlag("force", "publish templates that cannot be rendered as well, with warnings"),
		), config.RemoteFlags()...),
		Action: pushTemplates,
	}
}

// pushed is a line of what push did.
type pushed struct {
	change
	Version int `json:"version"`
}

func pushTemplates(c *cli.Context) error {
	dir, err := config.Argument(c, "the folder of templates")
	if err != nil {
		return err
	}
	note, labels := config.Read(c).Text("message"), config.Read(c).List("label")
	if utf8.RuneCountInString(note) > wire.CommitMessageRunesMax {
		return config.WrongValue(c, "message", note, "is longer than "+strconv.Itoa(wire.CommitMessageRunesMax)+" characters")
	}
	plan, cl, id, err := planned(c, dir, labels)
	if err != nil {
		return err
	}
	defer cl.Close()
	if lines := unrendered(plan); c.Bool("force") {
		warnAbout(c.App.ErrWriter, lines)
	} else if len(lines) > 0 {
		return refuseAbout("templates cannot be rendered, so nothing was published", lines)
	}

	done := []pushed{}
	var failed error
	for _, ch := range plan {
		if ch.State == "unchanged" {
			continue
		}
		t := ch.file.template
		t.CommitMessage, t.Labels = note, labels
		told, err := cl.Publish(c.Context, id, t)
		if err != nil {
			failed = fmt.Errorf("%w\nWhat is told above is published. Run it again to go on", ch.file.refused(err))
			break
		}
		if len(ch.Warnings) == 0 { // the server may be newer, and find more than we do
			for _, f := range told.Warnings {
				warnAbout(c.App.ErrWriter, []string{ch.file.located(f)})
			}
		}
		done = append(done, pushed{ch, told.VersionNumber})
	}
	if config.Read(c).Text("output") == "json" {
		return errors.Join(print.JSON(c.App.Writer, done), failed)
	}
	if len(done) > 0 {
		g := print.NewGrid(print.NewPainter(c), "STATE", "NAME", ">VERSION")
		for _, d := range done {
			g.Row(print.Styled(d.State, stateStyle(d.State)), d.Name, d.Version)
		}
		if err := g.Flush(); err != nil {
			return err
		}
	}
	if failed == nil {
		fmt.Fprintf(c.App.Writer, "%d of %d templates published.\n", len(done), len(plan))
	}
	return failed
}

func stateStyle(state string) print.Style {
	switch state {
	case "new", "restored":
		return print.Green
	case "changed", "labelled":
		return print.Yellow
	}
	return print.Faint
}

func diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "show what `templates push` would change", ArgsUsage: "DIR",
		Flags: append(config.OfCommand("templates diff",
			config.ListFlag("label", "a `label` that push is to be given; repeatable"),
		), config.RemoteFlags()...),
		Action: diffTemplates,
	}
}

// difference is a line of what diff found.
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
	plan, cl, _, err := planned(c, dir, config.Read(c).List("label"))
	if err != nil {
		return err
	}
	cl.Close()
	warnAbout(c.App.ErrWriter, unrendered(plan))
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
	if config.Read(c).Text("output") == "json" {
		return print.JSON(c.App.Writer, differences)
	}
	return showDifferences(print.NewPainter(c), differences, len(plan))
}

// showDifferences prints a line for each template, then the texts.
func showDifferences(p print.Painter, differences []difference, of int) error {
	if len(differences) > 0 {
		g := print.NewGrid(p, "STATE", "NAME", ">LATEST", "LINES")
		for _, d := range differences {
			latest, lines := "-", ""
			if d.Latest > 0 {
				latest = strconv.Itoa(d.Latest)
			}
			if d.Added+d.Removed > 0 {
				lines = fmt.Sprintf("+%d -%d", d.Added, d.Removed)
			}
			g.Row(print.Styled(d.State, stateStyle(d.State)), d.Name, latest, lines)
		}
		if err := g.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.Out, "%d of %d templates would be published.\n", len(differences), of)
	for _, d := range differences {
		if d.Diff == "" {
			continue
		}
		old := "/dev/null"
		if d.Latest > 0 && d.State != "restored" {
			old = fmt.Sprintf("%s, version %d", d.Name, d.Latest)
		}
		fmt.Fprintf(p.Out, "\n%s\n%s\n", p.Paint(print.Bold, "--- "+print.Printable(old)), p.Paint(print.Bold, "+++ "+print.Printable(d.File)))
		for line := range strings.SplitSeq(strings.TrimSuffix(d.Diff, "\n"), "\n") {
			fmt.Fprintln(p.Out, p.Paint(map[byte]print.Style{'+': print.Green, '-': print.Red, '@': print.Cyan}[cmp.Or(line, " ")[0]], print.Printable(line)))
		}
	}
	return nil
}
