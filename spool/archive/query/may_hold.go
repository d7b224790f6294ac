package query

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MayHold reports whether a body's texts can contain each word of a query, by its bytes
// alone. False is certain, true is not: so most bodies need not be parsed. It returns the
// buffer for reuse, which two goroutines must not share.
func (q *Query) MayHold(body, buffer []byte) (bool, []byte) {
	if len(q.Words) == 0 || assembled(body) {
		return true, buffer
	}

	// In the buffer, because a body that may hold the words is still parsed. ASCII is
	// enough: words with other letters are not plain.
	buffer = append(buffer[:0], body...)
	for i, c := range buffer {
		if 'A' <= c && c <= 'Z' {
			buffer[i] = c + 'a' - 'A'
		}
	}

	// A word that JSON may write in several ways proves nothing by its absence.
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
		letter := 'a' <= c && c <= 'z'
		if !letter && !('0' <= c && c <= '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}

	return true
}

// assembled reports whether a body's texts may differ from its bytes in more than their
// case: by escaped letters, by letters beyond ASCII whose lower case is within it (the
// Kelvin sign, the dotted I), or because they are assembled from the pieces of a stream.
func assembled(body []byte) bool {
	if bytes.Contains(body, []byte("\u212a")) || bytes.Contains(body, []byte("\u0130")) {
		return true
	}
	if escapesLetters(body) {
		return true
	}

	// The response of a stream is an array of pieces, and a word may be cut by two of
	// them. A prompt may say so, too; then the body is parsed needlessly.
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

// escapesLetters reports whether a body escapes a character that a plain word may have,
// or one whose lower case is such. Most escapes are of quotes, angle brackets and other
// letters.
func escapesLetters(body []byte) bool {
	for {
		i := bytes.Index(body, []byte(`\u`))
		if i < 0 {
			return false
		}

		// Invalid escapes are left to the parser.
		body = body[i+2:]
		if len(body) < 4 {
			return true
		}
		code, err := strconv.ParseUint(string(body[:4]), 16, 16)
		if err != nil || code == 0x212a || code == 0x0130 {
			return true
		}

		if code < utf8.RuneSelf && plain(strings.ToLower(string(rune(code)))) {
			return true
		}
	}
}
