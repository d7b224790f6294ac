package gitfiles

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// inScalar finds the place in a file of one character of a scalar's text.
//
// textLine and textColumn are the character's place in the text. If that line of the text is not
// in the file verbatim, because it is folded or has escapes, inScalar returns where the
// scalar begins, and exact is false.
func inScalar(content []byte, n *yaml.Node, textLine, textColumn int) (line, column int, exact bool) {
	line, skipped := n.Line, n.Column-1
	switch {
	case n.Style&yaml.LiteralStyle != 0: // the text begins after the line with the |
		line, skipped = n.Line+textLine, 0
	case strings.Contains(n.Value, "\n"):
		return n.Line, n.Column, false
	}

	lines, text := strings.Split(string(content), "\n"), strings.Split(n.Value, "\n")
	if line > len(lines) || textLine > len(text) {
		return n.Line, n.Column, false
	}
	written := []rune(lines[line-1])
	before, _, found := strings.Cut(string(written[min(skipped, len(written)):]), text[textLine-1])
	if !found {
		return n.Line, n.Column, false
	}

	return line, skipped + utf8.RuneCountInString(before) + textColumn, true
}
