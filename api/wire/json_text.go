package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns the text of a JSON string that was found valid and has no blanks around it, as encoding/json reads it.
func Unquote(quoted json.RawMessage) string {
	inner := quoted[1 : len(quoted)-1]
	var b strings.Builder
	b.Grow(len(inner))
	for {
		plain, char, rest := cutEscape(inner)
		b.Write(plain)
		if char < 0 {
			return b.String()
		}
		b.WriteRune(char)
		inner = rest
	}
}

// UnquoteBytes is Unquote for those who need no string. The text aliases quoted where nothing is escaped.
func UnquoteBytes(quoted []byte) (text []byte) {
	inner := quoted[1 : len(quoted)-1]
	for {
		plain, char, rest := cutEscape(inner)
		switch {
		case char >= 0:
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

// escaped is what stands for a byte behind a backslash, beside itself and u.
var escaped = [256]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// cutEscape takes the text of a valid string apart at its first escape: what stands before it, the character that it stands for
// (-1: there is none), and what is behind it. It leaps, for a text of a prompt has some escapes in every line.
func cutEscape(inner []byte) (plain []byte, char rune, rest []byte) {
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

	if utf16.IsSurrogate(char) {
		pair := unicode.ReplacementChar // as of one without the other
		if len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			pair = utf16.DecodeRune(char, hexRune(rest[2:]))
		}
		if char = pair; char != unicode.ReplacementChar {
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

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// Marshal is json.Marshal that leaves < > & as they are: only HTML needs them escaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendString appends s as a JSON string, as encoding/json writes it, but with < > & as they are. What is not valid UTF-8
// becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(slices.Grow(b, len(s)+len(s)/16+2), '"')
	return append(AppendEscaped(b, s), '"')
}

// AppendEscaped appends what AppendString writes between the quotes.
func AppendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	done := 0 // s up to here is written
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
			b = append(append(b, s[done:i]...), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			i += size
			done = i
			continue
		}
		b = append(append(b, s[done:i]...), '\\')
		switch c {
		case '"', '\\':
			b = append(b, c)
		case '\b':
			b = append(b, 'b')
		case '\f':
			b = append(b, 'f')
		case '\n':
			b = append(b, 'n')
		case '\r':
			b = append(b, 'r')
		case '\t':
			b = append(b, 't')
		default:
			b = append(b, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		done = i
	}
	return append(b, s[done:]...)
}
