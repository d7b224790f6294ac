package templates

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
)

func labelCommand() *cli.Command {
	return &cli.Command{
		Name: "label", Usage: "point a label to a version: `label NAME LABEL VERSION`; with --delete take it away: `label NAME LABEL --delete`", ArgsUsage: "NAME LABEL [VERSION]",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "delete", Usage: "take the label away", EnvVars: config.Variables("templates label delete")},
			config.SwitchFlag("force", "also point to a version that cannot be rendered, with warnings"),
		}, config.ServerFlags()...),
		Action: labelTemplate,
	}
}

func labelTemplate(c *cli.Context) error {
	args, deleting := c.Args().Slice(), c.Bool("delete")
	if deleting && len(args) != 2 || !deleting && len(args) != 3 {
		return config.Usagef(c, "give a template's name, a label and a version's number; or the name, the label and --delete")
	}
	name, label, number := args[0], args[1], 0
	if !deleting {
		n, err := strconv.Atoi(args[2])
		if err != nil || n < 1 || n > math.MaxInt32 {
			return config.Usagef(c, "%q is no number of a version; `promptspool templates list` shows the latest", args[2])
		}
		number = n
	}
	cl, id, err := config.Remote(c)
	if err != nil {
		return err
	}
	defer cl.Close()
	there, err := cl.Labels(c.Context, id, name)
	if err != nil {
		return err
	}
	var at wire.ReleaseLabel
	for _, l := range there.Labels {
		if l.Name == label {
			at = l
		}
	}
	if !deleting {
		if err := renderable(c, cl, id, name, number); err != nil {
			return err
		}
	}
	told, err := setLabel(c, cl, id, name, label, number, at)
	if err == nil {
		fmt.Fprintln(c.App.Writer, print.Printable(told))
	}
	return err
}

// renderable refuses a version that cannot be rendered; with --force it warns.
func renderable(c *cli.Context, cl *client.Client, id wire.Identity, name string, number int) error {
	findings, err := findingsOf(c.Context, cl, id, name, number)
	if err != nil {
		return err
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}

	if c.Bool("force") {
		warnAbout(c.App.ErrWriter, lines)
		return nil
	}
	if len(lines) > 0 {
		return refuseAbout(fmt.Sprintf("version %d of %s cannot be rendered, so the label was not moved", number, name), lines)
	}
	return nil
}

// setLabel creates, moves or takes away a label, and says what it did.
func setLabel(c *cli.Context, cl *client.Client, id wire.Identity, name, label string, number int, at wire.ReleaseLabel) (string, error) {
	switch {
	case number == 0 && at.ID == 0:
		return "", fmt.Errorf("%s has no label %q; `promptspool templates list` shows those it has", name, label)
	case number == 0:
		return fmt.Sprintf("The label %s is taken from version %d of %s.", label, at.Version, name), cl.DeleteLabel(c.Context, id, at.ID, "")
	case at.ID == 0:
		_, err := cl.CreateLabel(c.Context, id, name, wire.LabelWrite{Name: label, Version: number}, "")
		return fmt.Sprintf("The label %s points to version %d of %s.", label, number, name), err
	}
	_, err := cl.MoveLabel(c.Context, id, at.ID, number, "")
	return fmt.Sprintf("The label %s of %s points to version %d, before to %d.", label, name, number, at.Version), err
}

func archiveCommand() *cli.Command {
	return &cli.Command{
		Name: "archive", Usage: "take a template out of use; its versions stay, and `templates restore` brings it back", ArgsUsage: "NAME",
		Flags: config.ServerFlags(),
		Action: func(c *cli.Context) error {
			return onOne(c, (*client.Client).Archive, "%s is archived. `promptspool templates restore %[1]s` brings it back.")
		},
	}
}

func restoreCommand() *cli.Command {
	return &cli.Command{
		Name: "restore", Usage: "bring an archived template back", ArgsUsage: "NAME",
		Flags: config.ServerFlags(),
		Action: func(c *cli.Context) error {
			return onOne(c, (*client.Client).Restore, "%s is in use again.")
		},
	}
}

// onOne does something to the template that is named, and says so.
func onOne(c *cli.Context, do func(*client.Client, context.Context, wire.Identity, string) error, done string) error {
	v := config.Read(c)
	name := v.Argument("the name or id of one template")
	cl, id := v.Remote()
	if err := v.Err(); err != nil {
		return err
	}
	defer cl.Close()

	if err := do(cl, c.Context, id, name); err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, print.Printable(fmt.Sprintf(done, name)))
	return nil
}
