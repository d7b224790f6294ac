package query

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"promptspool/spool/archive/textindex"
)

// Sifts reports whether MayHold can exclude a body.
func (q *Query) Sifts() bool { return narrows(q.Where, func(t *Test) bool { return len(t.plain) > 0 }) }

// MayHold reports whether a body's texts can be what a query asks for, by its bytes alone. False is
// certain, true is not: so most bodies need not be parsed. It returns the buffer for reuse, which two
// goroutines must not share.
func (q *Query) MayHold(body, buffer []byte) (bool, []byte) {
	if assembled(body) {
		return true, buffer
	}

	// In the buffer, because a body that may hold the words is still parsed.
	buffer = append(buffer[:0], body...)
	for i, c := range buffer {
		if 'A' <= c && c <= 'Z' {
			buffer[i] = c + 'a' - 'A'
		}
	}

	return mayHold(q.Where, buffer), buffer
}

// mayHold is MayHold for a condition, and a body in lower case.
func mayHold(c Condition, body []byte) bool {
	fails := func(c Condition) bool { return !mayHold(c, body) }
	switch c := c.(type) {
	case All:
		return !slices.ContainsFunc(c, fails)
	case Any:
		return len(c) == 0 || slices.ContainsFunc(c, func(c Condition) bool { return mayHold(c, body) })
	case *Test:
		return !slices.ContainsFunc(c.plain, func(part string) bool { return !bytes.Contains(body, []byte(part)) })
	}

	return true
}

// plainParts returns runs of letters and digits that a text has if a positive operator holds for it,
// and that JSON can write in one way only. There are none if what is wanted has other letters.
func (o operation) plainParts() []string {
	want, _, ok := parseText(o.Value)
	if !ok || !slices.Contains([]string{"matches", "contains", "starts_with", "ends_with"}, o.Operator) ||
		strings.ContainsFunc(want, func(c rune) bool { return c >= utf8.RuneSelf }) {
		return nil
	}

	return strings.FieldsFunc(strings.ToLower(want), func(c rune) bool { return !plain(c) })
}

// plain reports whether a character is a letter or a digit of ASCII.
func plain(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

// assembled reports whether a body's texts may differ from its bytes in more than their case: by escaped
// letters, by letters beyond ASCII, which may count as such without their accents, or because they are
// assembled from the pieces of a stream.
func assembled(body []byte) bool {
	beyond := func(c rune) bool { return c >= utf8.RuneSelf && textindex.IsWord(c) }
	if bytes.ContainsFunc(body, beyond) || escapesLetters(body) {
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

// escapesLetters reports whether a body escapes a letter, a digit or an accent. Most escapes are of
// quotes, angle brackets and other signs.
func escapesLetters(body []byte) bool {
	for {
		_, rest, found := bytes.Cut(body, []byte(`\u`))
		if !found {
			return false
		}

		// Invalid escapes are left to the parser, and so are the halves of letters.
		if len(rest) < 4 {
			return true
		}
		code, err := strconv.ParseUint(string(rest[:4]), 16, 16)
		if err != nil || utf16.IsSurrogate(rune(code)) || textindex.IsWord(rune(code)) {
			return true
		}
		body = rest[4:]
	}
}
