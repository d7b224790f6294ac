package otlp

import (
	"bytes"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// text is a text as it was sent. A long one is read in steps: with its escapes resolved as a whole,
// it would take its memory a second time.
type text struct {
	b       []byte // what was not read yet
	escaped bool   // it is the inside of a JSON string
}

// isEmpty reports whether nothing is left to read.
func (t *text) isEmpty() bool { return len(t.b) == 0 }

// next reads about n bytes, and not a part of a character.
func (t *text) next(n int) []byte {
	if n = min(n, len(t.b)); n < len(t.b) {
		if t.escaped {
			n = wholeEscapes(t.b, n)
		}
		for range utf8.UTFMax - 1 {
			if n > 1 && !utf8.RuneStart(t.b[n]) {
				n--
			}
		}
	}
	step := t.b[:n]
	t.b = t.b[n:]

	if t.escaped {
		return jsonscan.Unescape(step)
	}
	return step
}

// beginning returns about the first n bytes.
func (t text) beginning(n int) []byte {
	whole := t.next(escapeBytes * n)
	return whole[:min(n, len(whole))]
}

// escapeBytes is the length of the longest escape, which may stand for one byte.
const escapeBytes = len(`\u0061`)

// wholeEscapes returns the largest number of bytes up to n that end neither in an escape nor between
// two escapes that are one character.
func wholeEscapes(inner []byte, n int) int {
	before := -1
	for i := 0; i < n; {
		leap := bytes.IndexByte(inner[i:n], '\\')
		if leap < 0 {
			return n
		}

		start := i + leap
		i = start + 2
		if inner[start+1] == 'u' {
			i = start + escapeBytes
		}
		if i > n || i == n && isHighHalf(inner[start:]) {
			if before == start-escapeBytes && isHighHalf(inner[before:]) {
				return before
			}
			return start
		}
		before = start
	}

	return n
}

// isHighHalf reports whether an escape is the first half of a surrogate pair.
func isHighHalf(escape []byte) bool {
	return escape[1] == 'u' && escape[2]|0x20 == 'd' && bytes.IndexByte([]byte("89abAB"), escape[3]) >= 0
}
