package templates

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/config"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/registry/render"
)

func labelTemplate(c *cli.Context) error {
	args, version := c.Args().Slice(), 0
	switch {
	case c.Bool("delete") && len(args) == 2:
	case c.Bool("delete") || len(args) != 3:
		return config.Usagef(c,
			"give a template's name, a label and a version's number; or the name, the label and --delete")
	default:
		n, err := strconv.ParseUint(args[2], 10, 31)
		if err != nil || n == 0 {
			return config.Usagef(c,
				"%q is not the number of a version; `promptspool templates list` shows the latest", args[2])
		}
		version = int(n)
	}
	cl, id, err := config.Read(c).Remote()
	if err != nil {
		return err
	}

	if version > 0 {
		if err := checkRenderable(c, cl, id, args[0], version); err != nil {
			return err
		}
	}
	outcome, err := pointLabel(c.Context, cl, id, args[0], args[1], version)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.App.Writer, print.Printable(outcome))
	return nil
}

// checkRenderable refuses a version that cannot be rendered; with --force it only warns.
func checkRenderable(c *cli.Context, cl *client.Client, id wire.Identity, template string, version int) error {
	findings, err := versionFindings(c.Context, cl, id, template, version)
	if err != nil {
		return err
	}
	lines := make([]string, len(findings))
	for i, f := range findings {
		lines[i] = f.String()
	}

	switch {
	// The person has decided, perhaps because only this server cannot render it.
	case c.Bool("force"):
		printWarnings(c.App.ErrWriter, lines)
	case len(lines) > 0:
		outcome := fmt.Sprintf("version %d of %s cannot be rendered, so the label was not moved", version, template)
		return errUnrenderable(outcome, lines)
	}
	return nil
}

// pointLabel creates, moves or, for version 0, deletes a label, and returns a sentence about the outcome.
func pointLabel(
	ctx context.Context, cl *client.Client, id wire.Identity, template, label string, version int,
) (string, error) {
	// By its id a label is moved or deleted, and only the server knows that.
	labels, err := cl.Labels(ctx, id, template)
	if err != nil {
		return "", err
	}
	var now wire.ReleaseLabel
	for _, l := range labels.Labels {
		if l.Name == label {
			now = l
		}
	}

	switch {
	case version == 0 && now.ID == 0:
		return "", fmt.Errorf("%s has no label %q; `promptspool templates list` shows those it has", template, label)
	case version == 0:
		outcome := fmt.Sprintf("The label %s is removed from version %d of %s.", label, now.Version, template)
		return outcome, cl.DeleteLabel(ctx, id, now.ID, "")
	case now.Version == version:
		return fmt.Sprintf("The label %s of %s already points to version %d.", label, template, version), nil
	case now.ID == 0:
		_, err := cl.CreateLabel(ctx, id, template, wire.LabelWrite{Name: label, Version: version}, "")
		return fmt.Sprintf("The label %s points to version %d of %s.", label, version, template), err
	}
	_, err = cl.MoveLabel(ctx, id, now.ID, version, "")
	return fmt.Sprintf("The label %s of %s now points to version %d (was %d).",
		label, template, version, now.Version), err
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

// serverSnippets returns a function that resolves snippets on the server, fetching each
// only once.
func serverSnippets(
	ctx context.Context, cl *client.Client, id wire.Identity,
) func(render.Snippet) (render.ResolvedSnippet, error) {
	known := map[render.Snippet]render.ResolvedSnippet{}

	return func(s render.Snippet) (render.ResolvedSnippet, error) {
		// One snippet is often in all of a folder's templates.
		if r, ok := known[s]; ok {
			return r, nil
		}

		// As published: a rendered one would have its own snippets filled in.
		raw, err := cl.Source(ctx, id, s.Name, wire.Selector{Version: s.Version, Label: s.Label})
		if wire.IsCode(err, wire.CodeNotFound) {
			return render.ResolvedSnippet{}, wire.Invalid(wire.FieldError{
				Field:  "snippet @@@" + s.String() + "@@@",
				Reason: "is neither in the folder nor on the server",
			})
		}
		if err != nil {
			return render.ResolvedSnippet{}, err
		}

		known[s] = render.ResolvedSnippet{Name: raw.Name, Version: raw.Version, Blueprint: raw.Blueprint}
		return known[s], nil
	}
}

// versionFindings returns what cannot be rendered in a version that the server has.
func versionFindings(
	ctx context.Context, cl *client.Client, id wire.Identity, name string, version int,
) ([]wire.Finding, error) {
	raw, err := cl.Source(ctx, id, name, wire.Selector{Version: version})
	if err != nil {
		return nil, err
	}

	expanded, err := render.Expand(raw.Name, raw.Blueprint, serverSnippets(ctx, cl, id))
	if wire.IsCode(err, wire.CodeInvalid) {
		// A snippet that is gone is a finding like any other, not the end of the command.
		return render.Unresolved(err), nil
	}
	if err != nil {
		return nil, err
	}
	return expanded.Findings(raw.Metadata), nil
}

// planFindings lists what cannot be rendered in the changes of a plan, with file names
// and lines.
func planFindings(plan []change) (lines []string) {
	for _, ch := range plan {
		if ch.State == "unchanged" {
			// It is not published.
			continue
		}
		for _, f := range ch.Warnings {
			lines = append(lines, ch.file.Locate(f))
		}
	}
	return lines
}

// printWarnings warns of what is published or labelled although it cannot be rendered.
func printWarnings(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, "warning:", print.Printable(line))
	}
}

// errUnrenderable returns the error of a command that refuses to continue without
// --force.
func errUnrenderable(outcome string, lines []string) error {
	return fmt.Errorf("%s; use --force to do it anyway:\n%s", outcome, strings.Join(lines, "\n"))
}
