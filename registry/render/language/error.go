package language

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is what is wrong with a text, or with its rendering. The message is a predicate,
// such as "has a { that is not closed".
type Error struct {
	Message      string
	At           int // the byte of the text where it begins
	Line, Column int // the same for people, from 1; 0 if it has no place in the text
}

// Error returns the message, with the place if there is one.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}

	return fmt.Sprintf("%s (line %d, column %d)", e.Message, e.Line, e.Column)
}

// Locate completes an error of a parser that counts bytes with line breaks as \n.
func Locate(err error, source string) error {
	if e, ok := err.(*Error); ok {
		e.At = originalOffset(source, e.At)
		e.Line, e.Column = Position(source, e.At)
	}

	return err
}

// Position returns the line and the column, in characters, of a byte of a text.
func Position(text string, at int) (line, column int) {
	before := UnixLines(text[:min(at, len(text))])
	lastBreak := strings.LastIndexByte(before, '\n')
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[lastBreak+1:]) + 1
}

// UnixLines makes every line break \n.
func UnixLines(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}

	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// originalOffset finds the byte of a text that is byte n of its UnixLines.
func originalOffset(text string, n int) int {
	for i := 0; i < len(text); i++ {
		if n == 0 {
			return i
		}
		// Of a line break of two bytes only the second counts.
		if text[i] != '\r' || i+1 == len(text) || text[i+1] != '\n' {
			n--
		}
	}

	return len(text)
}
