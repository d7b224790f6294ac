package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrapped breaks lines that are longer than width, as Python's textwrap does with Jinja's
// defaults, except that words are divided at whitespace and, if they are too long
// themselves, anywhere.
func (x *run) wrapped(s string, width int, breakLong bool, lineBreak string) string {
	if width < 1 {
		fail("wraps at the width %d", width)
	}

	x.pay(3*len(s) + 16)
	var out []string
	for _, line := range lines(s) {
		w := lineWrapper{x: x, width: width, breakLong: breakLong}
		out = append(out, w.wrap(line)...)
	}

	return x.joined(x.texts(out).items, lineBreak)
}

// lineWrapper breaks one line.
type lineWrapper struct {
	x         *run
	width     int
	breakLong bool

	out   []string
	line  string // the one that is being filled
	count int    // its characters
}

func (w *lineWrapper) wrap(line string) []string {
	for _, chunk := range blankRuns(line) {
		w.x.step()
		n := utf8.RuneCountInString(chunk)
		isBlank := strings.TrimSpace(chunk) == ""
		isLong := w.breakLong && n > w.width
		if w.count+n > w.width && w.line != "" && !isLong {
			w.flush()
		}
		if isBlank && w.line == "" && w.out != nil {
			continue // no line but the first begins with whitespace
		}

		if isLong && !isBlank {
			chunk, n = w.breakWord(chunk, n)
		}
		// The line grows chunk by chunk, and each time it is copied: so it is paid each
		// time.
		w.line += chunk
		w.x.pay(len(w.line))
		w.count += n
	}
	w.flush()

	return w.out
}

// breakWord fills lines with a word until the rest fits, and returns the rest.
func (w *lineWrapper) breakWord(word string, n int) (string, int) {
	for n > w.width {
		space := w.width - w.count
		if space < 1 {
			w.flush()
			continue
		}

		// By characters, as Python counts columns.
		runes := []rune(word)
		w.line += string(runes[:space])
		word = string(runes[space:])
		n -= space
		w.x.pay(4 * len(word))
		w.flush()
	}

	return word, n
}

// flush ends the line. A blank one is kept only if it is the first.
func (w *lineWrapper) flush() {
	w.line = strings.TrimRightFunc(w.line, unicode.IsSpace)
	if w.line != "" || w.out == nil {
		w.out = append(w.out, w.line)
	}
	w.line, w.count = "", 0
}

// blankRuns cuts a string into runs of whitespace and runs of anything else.
func blankRuns(s string) []string {
	var runs []string
	start, wasBlank := 0, false
	for i, r := range s {
		isBlank := unicode.IsSpace(r)
		switch {
		case i == start:
			wasBlank = isBlank
		case isBlank != wasBlank:
			runs = append(runs, s[start:i])
			start, wasBlank = i, isBlank
		}
	}
	if start < len(s) {
		runs = append(runs, s[start:])
	}

	return runs
}
