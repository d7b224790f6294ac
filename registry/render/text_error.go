package render

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// textError is what is wrong with a text, or with its rendering. The message is a predicate: "has a { that is not closed".
type textError struct {
	message      string
	at           int // the byte of the text where it begins
	line, column int // the same for people, from 1; 0 if it has no place in the text
}

// Error returns the message, with the place if there is one.
func (e *textError) Error() string {
	if e.line == 0 {
		return e.message
	}
	return fmt.Sprintf("%s (line %d, column %d)", e.message, e.line, e.column)
}

// located completes an error of a parser, which counts bytes with line breaks as \n.
func located(err error, source string) error {
	if e, ok := err.(*textError); ok {
		e.at = unixOffset(source, e.at)
		e.line, e.column = position(source, e.at)
	}
	return err
}

// position returns the line and the column, in characters, of a byte of a text.
func position(text string, at int) (line, column int) {
	before := unixLines(text[:min(at, len(text))])
	lastBreak := strings.LastIndexByte(before, '\n')

	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[lastBreak+1:]) + 1
}

// unixLines makes every line break \n.
func unixLines(text string) string {
	if strings.IndexByte(text, '\r') < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// unixOffset finds the byte of a text that is byte n of its unixLines.
func unixOffset(text string, n int) int {
	for i := 0; i < len(text); i++ {
		if n == 0 {
			return i
		}
		if text[i] != '\r' || i+1 == len(text) || text[i+1] != '\n' {
			n--
		}
	}
	return len(text)
}
