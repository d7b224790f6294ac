package query

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MayHold says whether a body's texts can hold each of the words of a query, by its bytes alone: false is sure, true is not. It
// spares most bodies from being read. Not for concurrent use with the same buffer, which it returns to be used again.
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

// plain says whether a word stands in JSON as it is: every character of it, and in one way.
func plain(word string) bool {
	for _, c := range []byte(word) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// assembled says whether a body's texts may differ from its bytes in more than their case: by escapes of letters, by letters
// beyond ASCII whose lower case lies in it (the Kelvin sign, the dotted I), or because a stream's pieces are put together.
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

// escapesLetters says whether there is an escape of a character that a plain word may have, or of one whose lower case is such.
// Most are not: clients escape quotes, angle brackets and letters beyond ASCII.
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
