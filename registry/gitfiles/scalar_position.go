package gitfiles

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// inScalar finds the place in a file of one character of a scalar's text.
//
// textLine and textColumn are the character's place in the text. inScalar follows the
// text through the scalar's written form, whatever its style. If the two cannot be
// matched, it returns where the scalar begins, and exact is false.
func inScalar(content []byte, n *yaml.Node, textLine, textColumn int) (line, column int, exact bool) {
	lines := strings.Split(string(content), "\n")
	if n.Line < 1 || n.Line > len(lines) {
		return n.Line, n.Column, false
	}

	w := scalarWalk{
		raw:    []rune(strings.Join(lines[n.Line-1:], "\n")),
		text:   []rune(n.Value),
		line:   n.Line,
		column: 1,
	}
	w.begin(n)

	atLine, atColumn := 1, 1
	for len(w.text) > 0 {
		current := w.text[0]
		if !w.align() {
			break
		}
		if atLine == textLine && atColumn == textColumn {
			return w.line, w.column, true
		}

		w.take()
		atColumn++
		if current == '\n' {
			atLine++
			atColumn = 1
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

// begin moves from the start of the scalar's line to the first rune of its content.
func (w *scalarWalk) begin(n *yaml.Node) {
	for range n.Column - 1 {
		w.advance()
	}

	// An anchor or a tag comes before the content.
	for len(w.raw) > 0 && (w.raw[0] == '&' || w.raw[0] == '!') {
		w.skip(func(r rune) bool { return !unicode.IsSpace(r) })
		w.skip(unicode.IsSpace)
	}

	switch n.Style &^ yaml.TaggedStyle {
	case yaml.LiteralStyle, yaml.FoldedStyle:
		w.block = true
		for header := w.line; w.line == header && len(w.raw) > 0; {
			w.advance()
		}
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		w.quote = w.raw[:1]
		w.advance()
	}
}

// advance moves over one rune of the written form.
func (w *scalarWalk) advance() {
	if len(w.raw) == 0 {
		return
	}

	w.column++
	if w.raw[0] == '\n' {
		w.line++
		w.column = 1
	}
	w.raw = w.raw[1:]
}

// skip advances over the runes for which match returns true.
func (w *scalarWalk) skip(match func(rune) bool) {
	for len(w.raw) > 0 && match(w.raw[0]) {
		w.advance()
	}
}

func (w *scalarWalk) quotedBy(quote rune) bool { return len(w.quote) > 0 && w.quote[0] == quote }

// align skips indentation and folded line breaks, up to what stands for the text's first
// rune. It reports whether it found it, and sets width.
func (w *scalarWalk) align() bool {
	for len(w.raw) > 0 {
		r, next := w.raw[0], rune(0)
		if len(w.raw) > 1 {
			next = w.raw[1]
		}

		w.width = 1
		switch {
		case w.quotedBy('"') && r == '\\' && (next == '\n' || next == '\r'):
			// An escaped line break joins two lines, without their indentation.
			w.advance()
			w.skip(unicode.IsSpace)
			continue
		case w.quotedBy('"') && r == '\\':
			w.width = max(2, map[rune]int{'x': 4, 'u': 6, 'U': 10}[next])
			return true
		case w.quotedBy('\'') && r == '\'' && next == '\'':
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

// take moves past the text's first rune.
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
