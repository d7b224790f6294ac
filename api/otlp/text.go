package otlp

import (
	"bytes"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
)

// text is a text as it was sent. It is read in steps: with the escapes of a long one resolved as a
// whole, it would take its memory a second time.
type text struct {
	b       []byte // what was not read yet
	escaped bool   // it is the inside of a JSON string
	char    [utf8.UTFMax]byte
}

// isEmpty reports whether nothing is left to read.
func (t *text) isEmpty() bool { return len(t.b) == 0 }

// next reads at most n bytes, and not a part of a character, or else the character of an escape. The
// result is valid until the next call.
func (t *text) next(n int) []byte {
	n = min(n, len(t.b))
	if t.escaped {
		leap := bytes.IndexByte(t.b[:n], '\\')
		if leap == 0 {
			_, char, rest := jsonscan.CutEscape(t.b)
			t.b = rest
			return utf8.AppendRune(t.char[:0], char)
		}
		if leap > 0 {
			n = leap
		}
	}

	for range utf8.UTFMax - 1 {
		if 1 < n && n < len(t.b) && !utf8.RuneStart(t.b[n]) {
			n--
		}
	}
	step := t.b[:n]
	t.b = t.b[n:]

	return step
}

// beginning returns the first n bytes.
func (t text) beginning(n int) []byte {
	whole := t.b[:min(n, len(t.b))]
	if !t.escaped || bytes.IndexByte(whole, '\\') < 0 {
		return whole
	}

	whole = nil
	for len(whole) < n && !t.isEmpty() {
		whole = append(whole, t.next(n-len(whole))...)
	}

	return whole[:min(n, len(whole))]
}

// escapeBytes is the length of the longest escape, which may stand for one byte.
const escapeBytes = len(`\u0061`)
