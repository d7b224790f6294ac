package markup

import "strings"

const (
	nestedMax = 20   // quotes and lists that a line opens
	signsMax  = 1000 // what may begin emphasis, a link or code: the sum of its squares by paragraph, per byte
)

// tame reports whether a Markdown text costs no more than in proportion to its bytes: the parser
// takes the square of what is nested in one line, of the signs in one paragraph, and of the cells
// that short rows do not have.
func tame(text string) bool {
	signs, spent, block, columns, rows := 0, 0, 0, 0, 0
	for line := range strings.Lines(text) {
		opened, content := containers(line)
		if opened > nestedMax {
			return false
		}

		// Only an empty line surely ends a paragraph: a quote or an item may as well
		// continue with it.
		if strings.TrimLeft(line, " \t\r\n") == "" {
			spent += signs * signs
			signs, block, columns, rows = 0, 0, 0, 0
		}

		block += len(line)
		if n := delimited(content); n > columns {
			columns, rows, block = n, 0, len(line)
		}
		rows++
		for i := range len(content) {
			if strings.IndexByte("*_[]!<`~", content[i]) >= 0 {
				signs++
			}
		}

		// A row has at least as many bytes as cells, unless they are missing.
		if columns*rows > block+columns {
			return false
		}
	}

	return spent+signs*signs <= signsMax*len(text)
}

// containers returns how many quotes and bulleted or numbered items a line opens, and what
// they hold.
func containers(line string) (opened int, content string) {
	rest := strings.TrimLeft(line, " \t\r\n")
	for rest != "" {
		sign := 1
		if digits := len(rest) - len(strings.TrimLeft(rest, "0123456789")); digits > 0 {
			sign = digits + 1
			if digits > 9 || len(rest) <= digits || rest[digits] != '.' && rest[digits] != ')' {
				return opened, rest
			}
		} else if strings.IndexByte(">-*+", rest[0]) < 0 {
			return opened, rest
		}

		// Anything but a quote needs a blank.
		isItem := len(rest) > sign && strings.IndexByte(" \t\r\n", rest[sign]) >= 0
		if rest[0] != '>' && !isItem {
			return opened, rest
		}
		opened++
		rest = strings.TrimLeft(rest[sign:], " \t\r\n")
	}

	return opened, ""
}

// delimited returns how many columns a line makes of the one above it, if it is all dashes and
// bars.
func delimited(line string) int {
	bars := 0
	for i := range len(line) {
		switch line[i] {
		case '|':
			bars++
		case '-', ':', ' ', '\t', '\r', '\n':
		default:
			return 0
		}
	}
	if !strings.Contains(line, "-") {
		return 0
	}

	return bars + 1
}
