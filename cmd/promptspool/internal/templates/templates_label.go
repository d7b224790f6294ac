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
	return config.Command("label NAME LABEL [VERSION]",
		"point a label to a version: `label NAME LABEL VERSION`; "+
			"with --delete take it away: `label NAME LABEL --delete`",
		labelTemplate, []cli.Flag{
			config.SwitchFlag("delete", "take the label away"),
			config.SwitchFlag("force", "also point to a version that cannot be rendered, with warnings"),
		}, config.ServerFlags())
}

// labelMove is what the command does to one label of a template.
type labelMove struct {
	template string
	label    string
	version  int // 0 deletes the label
}

func readLabelMove(c *cli.Context) (labelMove, error) {
	args, deleting := c.Args().Slice(), c.Bool("delete")
	if deleting && len(args) != 2 || !deleting && len(args) != 3 {
		return labelMove{}, config.Usagef(c,
			"give a template's name, a label and a version's number; or the name, the label and --delete")
	}

	m := labelMove{template: args[0], label: args[1]}
	if deleting {
		return m, nil
	}

	version, err := strconv.Atoi(args[2])
	if err != nil || version < 1 || version > math.MaxInt32 {
		return labelMove{}, config.Usagef(c,
			"%q is not the number of a version; `promptspool templates list` shows the latest", args[2])
	}
	m.version = version
	return m, nil
}

func labelTemplate(c *cli.Context) error {
	m, err := readLabelMove(c)
	if err != nil {
		return err
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}

	// By its id a label is moved or deleted, and only the server knows that.
	labels, err := cl.Labels(c.Context, id, m.template)
	if err != nil {
		return err
	}
	var current wire.ReleaseLabel
	for _, l := range labels.Labels {
		if l.Name == m.label {
			current = l
		}
	}

	if m.version > 0 {
		if err := checkRenderable(c, cl, id, m); err != nil {
			return err
		}
	}
	outcome, err := m.apply(c.Context, cl, id, current)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, print.Printable(outcome))
	return nil
}

// checkRenderable refuses a version that cannot be rendered; with --force it only warns.
func checkRenderable(c *cli.Context, cl *client.Client, id wire.Identity, m labelMove) error {
	findings, err := versionFindings(c.Context, cl, id, m.template, m.version)
	if err != nil {
		return err
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}

	if c.Bool("force") {
		// The person has decided, perhaps because only this server cannot render it.
		printWarnings(c.App.ErrWriter, lines)
		return nil
	}
	if len(lines) > 0 {
		outcome := fmt.Sprintf("version %d of %s cannot be rendered, so the label was not moved", m.version, m.template)
		return errUnrenderable(outcome, lines)
	}
	return nil
}

// apply creates, moves or deletes a label, and returns a sentence about the outcome.
//
// current is the label as the server has it; its zero value if it has none of this name.
func (m labelMove) apply(
	ctx context.Context, cl *client.Client, id wire.Identity, current wire.ReleaseLabel,
) (string, error) {
	switch {
	case m.version == 0 && current.ID == 0:
		return "", fmt.Errorf("%s has no label %q; `promptspool templates list` shows those it has",
			m.template, m.label)
	case m.version == 0:
		outcome := fmt.Sprintf("The label %s is removed from version %d of %s.", m.label, current.Version, m.template)
		return outcome, cl.DeleteLabel(ctx, id, current.ID, "")
	case current.Version == m.version:
		return fmt.Sprintf("The label %s of %s already points to version %d.", m.label, m.template, m.version), nil
	case current.ID == 0:
		_, err := cl.CreateLabel(ctx, id, m.template, wire.LabelWrite{Name: m.label, Version: m.version}, "")
		return fmt.Sprintf("The label %s points to version %d of %s.", m.label, m.version, m.template), err
	}

	_, err := cl.MoveLabel(ctx, id, current.ID, m.version, "")
	return fmt.Sprintf("The label %s of %s now points to version %d (was %d).",
		m.label, m.template, m.version, current.Version), err
}

func archiveCommand() *cli.Command {
	return config.Command("archive NAME",
		"take a template out of use; its versions stay, and `templates restore` brings it back",
		withTemplate((*client.Client).Archive, "%s is archived. `promptspool templates restore %[1]s` brings it back."),
		config.ServerFlags())
}

func restoreCommand() *cli.Command {
	return config.Command("restore NAME", "bring an archived template back",
		withTemplate((*client.Client).Restore, "%s is in use again."), config.ServerFlags())
}

// withTemplate returns an action that does something to the template that the argument names.
func withTemplate(
	do func(_ *client.Client, _ context.Context, id wire.Identity, ident, by string) error, outcome string,
) cli.ActionFunc {
	return func(c *cli.Context) error {
		v := config.Read(c)
		name := v.Argument("the name or id of one template")
		cl, id, err := v.Remote()
		if err != nil {
			return err
		}

		if err := do(cl, c.Context, id, name, ""); err != nil {
			return err
		}
		fmt.Fprintln(c.App.Writer, print.Printable(fmt.Sprintf(outcome, name)))
		return nil
	}
}
