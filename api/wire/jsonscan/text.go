package jsonscan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a valid JSON string, as encoding/json reads it. quoted must
// not have white space around it.
func Unquote(quoted json.RawMessage) string { return string(UnquoteBytes(quoted)) }

// UnquoteBytes is Unquote without the copy: the text aliases quoted unless it has
// escapes.
func UnquoteBytes(quoted []byte) (text []byte) { return Unescape(quoted[1 : len(quoted)-1]) }

// Unescape is UnquoteBytes of what is between the quotes, or of a part of it. The part begins and
// ends with whole characters.
func Unescape(inner []byte) (text []byte) {
	for {
		plain, char, rest := CutEscape(inner)
		switch {
		case char >= 0:
			// There is an escape: the text has to be copied.
		case text == nil:
			return plain
		default:
			return append(text, plain...)
		}

		text = slices.Grow(text, len(inner))
		text = utf8.AppendRune(append(text, plain...), char)
		inner = rest
	}
}

// escaped maps the letter of an escape to its character. Zero: the letter is u, or stands
// for itself.
var escaped = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// CutEscape splits the inside of a valid JSON string at its first escape. It returns the text before
// it, the character that it stands for (-1 if there is no escape), and the text after it.
func CutEscape(inner []byte) (plain []byte, char rune, rest []byte) {
	// A leap, because a prompt has a few escapes in every line, and long runs between
	// them.
	leap := bytes.IndexByte(inner, '\\')
	if leap < 0 {
		return inner, -1, nil
	}

	plain, rest = inner[:leap], inner[leap+2:]
	switch c := inner[leap+1]; {
	case c == 'u':
		char, rest = hexRune(rest), rest[4:]
	case escaped[c] != 0:
		return plain, rune(escaped[c]), rest
	default:
		return plain, rune(c), rest
	}

	// Characters beyond U+FFFF are written as two escapes. Half a pair is not a
	// character: it becomes U+FFFD, and the escape after it is read on its own.
	if utf16.IsSurrogate(char) {
		pair := unicode.ReplacementChar
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			pair = utf16.DecodeRune(char, hexRune(rest[2:]))
		}
		char = pair
		if char != unicode.ReplacementChar {
			rest = rest[6:]
		}
	}

	return plain, char, rest
}

// hexRune reads four hexadecimal digits.
func hexRune(digits []byte) rune {
	r, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(r)
}

// Position returns the line and the column, in characters, of a byte of a text, both from 1.
func Position(text []byte, at int) (line, column int) {
	before := text[:at]
	inLine := before[bytes.LastIndexByte(before, '\n')+1:]

	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(inLine) + 1
}
