package templates

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"promptspool/api/client"
	"promptspool/api/wire"
	"promptspool/cmd/promptspool/internal/print"
	"promptspool/registry/render"
)

// serverSnippets resolves snippets to what a server has, each asked for once.
func serverSnippets(
	ctx context.Context, cl *client.Client, id wire.Identity,
) func(render.Snippet) (render.ResolvedSnippet, error) {
	known := map[render.Snippet]render.ResolvedSnippet{}

	return func(s render.Snippet) (render.ResolvedSnippet, error) {
		if r, ok := known[s]; ok {
			return r, nil
		}
		raw, err := cl.Source(ctx, id, s.Name, wire.Selector{Version: s.Version, Label: s.Label})
		if wire.IsCode(err, wire.CodeNotFound) {
			return render.ResolvedSnippet{}, wire.Invalid(wire.FieldError{
				Field: "snippet @@@" + s.String() + "@@@", Reason: "is neither in the folder nor on the server",
			})
		}
		if err != nil {
			return render.ResolvedSnippet{}, err
		}

		known[s] = render.ResolvedSnippet{Name: raw.Name, Version: raw.Version, Blueprint: raw.Blueprint}
		return known[s], nil
	}
}

// findingsOf reports what of a version at the server cannot be rendered.
func findingsOf(ctx context.Context, cl *client.Client, id wire.Identity, name string, version int) ([]wire.Finding, error) {
	raw, err := cl.Source(ctx, id, name, wire.Selector{Version: version})
	if err != nil {
		return nil, err
	}
	expanded, err := render.Expand(raw.Name, raw.Blueprint, serverSnippets(ctx, cl, id))
	if wire.IsCode(err, wire.CodeInvalid) {
		return render.Unresolved(err), nil
	}
	if err != nil {
		return nil, err
	}
	return expanded.Findings(raw.Metadata), nil
}

// unrendered lists what of the changes of a plan cannot be rendered, by the places in the files.
func unrendered(plan []change) (lines []string) {
	for _, ch := range plan {
		if ch.State == "unchanged" {
			continue // nothing is done with it
		}
		for _, f := range ch.Warnings {
			lines = append(lines, ch.file.located(f))
		}
	}
	return lines
}

// warnAbout prints what is published although it cannot be rendered.
func warnAbout(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, "warning:", print.Printable(line))
	}
}

// refuseAbout is the error of what is not done since something cannot be rendered.
func refuseAbout(done string, lines []string) error {
	return fmt.Errorf("%s; --force does it all the same:\n%s", done, strings.Join(lines, "\n"))
}

// located is a finding with its place in the file.
func (f *templateFile) located(x wire.Finding) string {
	field := x.Path
	if whole := "prompt_template." + field; f.lines["prompt_template"] > 0 {
		field = whole
	}

	// A content of one text is written without the block around it.
	for field != "" && f.scalars[field] == nil {
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
	if field == "" {
		return fmt.Sprintf("%s:%d:1: %s %s", f.path, f.line(x.Path), x.Path, x.Message)
	}

	line, column, exact := inScalar(f.content, f.scalars[field], x.Line, x.Column)
	if !exact {
		return fmt.Sprintf("%s:%d:%d: %s, in line %d, column %d of its text, %s", f.path, line, column, field, x.Line, x.Column, x.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s %s", f.path, line, column, field, x.Message)
}

// inScalar finds where in a file a character of a scalar's text is, by its line and column in that text. It follows the
// text through the scalar's written form, whatever its style; if it loses its way, it returns the scalar's beginning, and not exact.
func inScalar(content []byte, n *yaml.Node, textLine, textColumn int) (line, column int, exact bool) {
	lines := strings.Split(string(content), "\n")
	if n.Line < 1 || n.Line > len(lines) {
		return n.Line, n.Column, false
	}

	w := scalarWalk{
		raw: []rune(strings.Join(lines[n.Line-1:], "\n")), text: []rune(n.Value),
		line: n.Line, column: 1,
	}
	for range n.Column - 1 {
		w.advance()
	}
	for len(w.raw) > 0 && (w.raw[0] == '&' || w.raw[0] == '!') { // an anchor, a tag
		w.skip(func(r rune) bool { return !unicode.IsSpace(r) })
		w.skip(unicode.IsSpace)
	}
	switch n.Style &^ yaml.TaggedStyle {
	case yaml.LiteralStyle, yaml.FoldedStyle:
		w.block = true
		for begin := w.line; w.line == begin && len(w.raw) > 0; {
			w.advance()
		}
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		w.quote = w.raw[:1]
		w.advance()
	}

	atLine, atColumn := 1, 1
	for len(w.text) > 0 {
		before := w.text[0]
		if !w.align() {
			break
		}
		if atLine == textLine && atColumn == textColumn {
			return w.line, w.column, true
		}
		w.take()
		if atColumn++; before == '\n' {
			atLine, atColumn = atLine+1, 1
		}
	}
	return n.Line, n.Column, false
}

// scalarWalk goes through the written form of a scalar and its text side by side.
type scalarWalk struct {
	raw, text    []rune
	line, column int    // of raw's first rune, in the file
	block        bool   // | and >, whose lines keep their blanks beyond the indentation
	quote        []rune // " or ', if it is quoted
	width        int    // runes of raw that stand for the text's first one
}

func (w *scalarWalk) advance() {
	if len(w.raw) == 0 {
		return
	}
	if w.column++; w.raw[0] == '\n' {
		w.line, w.column = w.line+1, 1
	}
	w.raw = w.raw[1:]
}

// skip advances over what is such a rune.
func (w *scalarWalk) skip(such func(rune) bool) {
	for len(w.raw) > 0 && such(w.raw[0]) {
		w.advance()
	}
}

func (w *scalarWalk) quoted(by rune) bool { return len(w.quote) > 0 && w.quote[0] == by }

// align skips indentation and folded line breaks, up to what stands for the text's first rune. It reports
// whether there is something that does.
func (w *scalarWalk) align() bool {
	for len(w.raw) > 0 {
		r, next := w.raw[0], rune(0)
		if len(w.raw) > 1 {
			next = w.raw[1]
		}
		switch w.width = 1; {
		case w.quoted('"') && r == '\\' && (next == '\n' || next == '\r'): // it joins the lines
			w.advance()
			w.skip(unicode.IsSpace)
			continue
		case w.quoted('"') && r == '\\':
			w.width = max(2, map[rune]int{'x': 4, 'u': 6, 'U': 10}[next])
			return true
		case w.quoted('\'') && r == '\'' && next == '\'':
			w.width = 2
			return w.text[0] == '\''
		case r == w.text[0], r == '\n' && w.text[0] == ' ':
			return true
		case !unicode.IsSpace(r):
			return false
		}
		w.advance()
	}
	return false
}

// take moves behind the text's first rune.
func (w *scalarWalk) take() {
	line := w.line
	for range w.width {
		w.advance()
	}
	if w.line > line && !w.block {
		w.skip(func(r rune) bool { return r == ' ' || r == '\t' })
	}
	w.text = w.text[1:]
}
