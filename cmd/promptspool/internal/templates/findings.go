package templates

import (
	"context"
	"fmt"
	"io"
	"strings"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/registry/render"
)

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
			continue // it is not published
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
