package otlp

import (
	"bytes"
	"strconv"
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

// next reads about n bytes, and not a part of a character. Half of a surrogate pair is
// not UTF-8 either, and is treated like other such bytes.
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
		return unescape(step)
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

// replacement is U+FFFD, which stands for what is not a character.
var replacement = []byte("\uFFFD")

// unescape resolves escapes. Half of a surrogate pair becomes the three bytes that it would have in
// UTF-8.
func unescape(inner []byte) (text []byte) {
	text = jsonscan.Unescape(inner)
	if !bytes.Contains(text, replacement) || !bytes.Contains(inner, []byte(`\u`)) {
		return text
	}

	text = nil
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return append(text, inner...)
		}
		text = append(text, inner[:i]...)
		inner = inner[i:]

		// Two escapes may be one character, so they are read together.
		n := 2
		if inner[1] == 'u' {
			n = escapeBytes
			if len(inner) >= 2*n && inner[n] == '\\' && inner[n+1] == 'u' {
				if r, size := utf8.DecodeRune(jsonscan.Unescape(inner[:2*n])); size == utf8.UTFMax {
					text, inner = utf8.AppendRune(text, r), inner[2*n:]
					continue
				}
			}
		}

		half, err := strconv.ParseUint(string(inner[2:n]), 16, 16)
		if n == escapeBytes && err == nil && 0xd800 <= half && half < 0xe000 {
			text = append(text, 0xe0|byte(half>>12), 0x80|byte(half>>6)&0x3f, 0x80|byte(half)&0x3f)
		} else {
			text = append(text, jsonscan.Unescape(inner[:n])...)
		}
		inner = inner[n:]
	}
}
