package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"promptspool/api/wire"
)

func pushCommand() *cli.Command {
	return &cli.Command{
		Name: "push", Usage: "publish what changed in a folder of templates; a bad file stops everything before anything is published", ArgsUsage: "DIR",
		Flags: append(own("templates push",
			stringFlag("message", "", "the `text` of the commit message of what is published"),
			listFlag("label", "a `label` that is to point to what the folder holds, of every template in it; repeatable"),
			boolFlag("templates push", "force", "publish templates that cannot be rendered as well, with warnings"),
		), remoteFlags()...),
		Action: pushTemplates,
	}
}

// pushed is a line of what push did.
type pushed struct {
	change
	Version int `json:"version"`
}

func pushTemplates(c *cli.Context) error {
	dir, err := argument(c, "the folder of templates")
	if err != nil {
		return err
	}
	note, labels := text(c, "message"), texts(c, "label")
	if utf8.RuneCountInString(note) > wire.CommitMessageRunesMax {
		return wrong(c, "message", note, "is longer than "+strconv.Itoa(wire.CommitMessageRunesMax)+" characters")
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
	if text(c, "output") == "json" {
		return errors.Join(printJSON(c.App.Writer, done), failed)
	}
	if len(done) > 0 {
		g := newGrid(newPainter(c), "STATE", "NAME", ">VERSION")
		for _, d := range done {
			g.row(cell{d.State, stateStyle(d.State)}, d.Name, d.Version)
		}
		if err := g.flush(); err != nil {
			return err
		}
	}
	if failed == nil {
		fmt.Fprintf(c.App.Writer, "%d of %d templates published.\n", len(done), len(plan))
	}
	return failed
}

func stateStyle(state string) style {
	switch state {
	case "new", "restored":
		return green
	case "changed", "labelled":
		return yellow
	}
	return faint
}

func diffCommand() *cli.Command {
	return &cli.Command{
		Name: "diff", Usage: "show what `templates push` would change", ArgsUsage: "DIR",
		Flags: append(own("templates diff",
			listFlag("label", "a `label` that push is to be given; repeatable"),
		), remoteFlags()...),
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
	dir, err := argument(c, "the folder of templates")
	if err != nil {
		return err
	}
	plan, cl, _, err := planned(c, dir, texts(c, "label"))
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
	if text(c, "output") == "json" {
		return printJSON(c.App.Writer, differences)
	}
	return showDifferences(newPainter(c), differences, len(plan))
}

// showDifferences prints a line for each template, then the texts.
func showDifferences(p painter, differences []difference, of int) error {
	if len(differences) > 0 {
		g := newGrid(p, "STATE", "NAME", ">LATEST", "LINES")
		for _, d := range differences {
			latest, lines := "-", ""
			if d.Latest > 0 {
				latest = strconv.Itoa(d.Latest)
			}
			if d.Added+d.Removed > 0 {
				lines = fmt.Sprintf("+%d -%d", d.Added, d.Removed)
			}
			g.row(cell{d.State, stateStyle(d.State)}, d.Name, latest, lines)
		}
		if err := g.flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.w, "%d of %d templates would be published.\n", len(differences), of)
	for _, d := range differences {
		if d.Diff == "" {
			continue
		}
		old := "/dev/null"
		if d.Latest > 0 && d.State != "restored" {
			old = fmt.Sprintf("%s, version %d", d.Name, d.Latest)
		}
		fmt.Fprintf(p.w, "\n%s\n%s\n", p.paint(bold, "--- "+printable(old)), p.paint(bold, "+++ "+printable(d.File)))
		for line := range strings.SplitSeq(strings.TrimSuffix(d.Diff, "\n"), "\n") {
			fmt.Fprintln(p.w, p.paint(map[byte]style{'+': green, '-': red, '@': cyan}[cmp.Or(line, " ")[0]], printable(line)))
		}
	}
	return nil
}
