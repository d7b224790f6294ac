package jsonscan

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Marshal is json.Marshal, but leaves < > & as they are: only HTML needs them escaped.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendString appends s as a JSON string, as Marshal writes it. Invalid UTF-8 becomes
// U+FFFD.
func AppendString(b []byte, s string) []byte {
	b = append(slices.Grow(b, len(s)+len(s)/16+2), '"')
	return append(AppendEscaped(b, s), '"')
}

// unescaped marks the ASCII characters that stand for themselves in a JSON string.
var unescaped = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// AppendEscaped appends what AppendString writes between the quotes.
func AppendEscaped[T string | []byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"

	// Up to here s is written.
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if unescaped[c] {
			i++
			continue
		}

		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}

			// Invalid UTF-8, or a line separator that JavaScript does not allow in
			// strings.
			b = append(b, s[done:i]...)
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
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
