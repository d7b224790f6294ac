package query

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MayHold reports whether a body's texts can contain each word of a query, by its bytes alone.
// False is certain, true is not: so most bodies need not be parsed. It returns the buffer for
// reuse, which two goroutines must not share.
func (q *Query) MayHold(body, buffer []byte) (bool, []byte) {
	if len(q.Words) == 0 || assembled(body) {
		return true, buffer
	}

	buffer = append(buffer[:0], body...)
	for i, c := range buffer {
		if 'A' <= c && c <= 'Z' {
			buffer[i] = c + 'a' - 'A'
		}
	}

	for _, word := range q.Words {
		if plain(word) && !bytes.Contains(buffer, []byte(word)) {
			return false, buffer
		}
	}

	return true, buffer
}

// plain reports whether JSON can write a word in one way only, as it is.
func plain(word string) bool {
	for _, c := range []byte(word) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// assembled reports whether a body's texts may differ from its bytes in more than their case: by
// escaped letters, by letters beyond ASCII whose lower case is within it (the Kelvin sign, the
// dotted I), or because they are assembled from the pieces of a stream.
func assembled(body []byte) bool {
	if bytes.Contains(body, []byte("\u212a")) || bytes.Contains(body, []byte("\u0130")) || escapesLetters(body) {
		return true
	}
	const response = `"request_response"`
	for {
		_, rest, found := bytes.Cut(body, []byte(response))
		if !found {
			return false
		}
		rest = bytes.TrimLeft(rest, " \t\r\n:")
		if len(rest) > 0 && rest[0] == '[' {
			return true
		}
		body = rest
	}
}

// escapesLetters reports whether a body escapes a character that a plain word may have, or one
// whose lower case is such. Most escapes are of quotes, angle brackets and other letters.
func escapesLetters(body []byte) bool {
	for {
		i := bytes.Index(body, []byte(`\u`))
		if i < 0 {
			return false
		}
		if body = body[i+2:]; len(body) < 4 {
			return true
		}
		code, err := strconv.ParseUint(string(body[:4]), 16, 16)
		if err != nil || code == 0x212a || code == 0x0130 || code < utf8.RuneSelf && plain(strings.ToLower(string(rune(code)))) {
			return true
		}
	}
}
