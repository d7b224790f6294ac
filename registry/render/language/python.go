package language

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"promptspool/api/wire/jsonscan"
)

// Str returns what Python's str() gives for a JSON value that json.loads read.
func Str(v json.RawMessage) string {
	if v[0] == '"' {
		return jsonscan.Unquote(v)
	}
	return string(AppendRepr(nil, v))
}

// AppendStr appends what Str returns.
func AppendStr(b []byte, v json.RawMessage) []byte {
	if v[0] != '"' {
		return AppendRepr(b, v)
	}
	// The usual case, without a copy.
	if bytes.IndexByte(v, '\\') < 0 {
		return append(b, v[1:len(v)-1]...)
	}

	return append(b, jsonscan.Unquote(v)...)
}

// AppendRepr appends what Python's repr() gives for a JSON value. The tokens of JSON and of
// a repr correspond one to one, so a single pass does it, however deep the value is nested.
func AppendRepr(b []byte, v json.RawMessage) []byte {
	for i := 0; i < len(v); {
		switch c := v[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '{', '}', '[', ']':
			b = append(b, c)
			i++
		case ',', ':':
			b = append(b, c, ' ')
			i++

		case '"':
			end := jsonscan.SkipString(v, i)
			b = AppendQuoted(b, jsonscan.Unquote(v[i:end]))
			i = end
		default:
			end := i
			for end < len(v) && strings.IndexByte(" \t\n\r,:]}", v[end]) < 0 {
				end++
			}
			b = AppendScalar(b, v[i:end])
			i = end
		}
	}

	return b
}

// AppendScalar appends the repr of true, false, null or a number.
func AppendScalar(b, token []byte) []byte {
	switch string(token) {
	case "true":
		return append(b, "True"...)
	case "false":
		return append(b, "False"...)
	case "null":
		return append(b, "None"...)
	// Python reads it as an int, which has no negative zero.
	case "-0":
		return append(b, '0')
	}

	if bytes.ContainsAny(token, ".eE") {
		return append(b, FloatRepr(ParseFloat(string(token)))...)
	}
	return append(b, token...)
}

// IsInteger reports whether Python reads a JSON number as an int.
func IsInteger(number string) bool { return !strings.ContainsAny(number, ".eE") }

// ParseFloat reads a JSON number. One that is too large is infinite, as in Python.
func ParseFloat(number string) float64 {
	x, _ := strconv.ParseFloat(number, 64)
	return x
}

// FloatRepr returns the shortest text that reads back as x, with an exponent where Python
// has one.
func FloatRepr(x float64) string {
	if math.IsInf(x, 0) {
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(x, 'g', -1, 64)), "+")
	}

	scientific := strconv.FormatFloat(x, 'e', -1, 64)
	if exponent := exponentOf(scientific); exponent < -4 || exponent >= 16 {
		return scientific
	}
	// Python always shows that it is a float.
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if IsInteger(s) {
		s += ".0"
	}

	return s
}

// exponentOf reads the exponent of a number such as 1.5e-07.
func exponentOf(scientific string) int {
	_, exponent, _ := strings.Cut(scientific, "e")
	n, _ := strconv.Atoi(exponent)
	return n
}

// AppendQuoted appends the repr of a string. It is in single quotes unless it contains
// some and no double quotes. Unprintable characters are escaped.
func AppendQuoted(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}

	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < 0x7f && r >= ' ' || r > 0x7f && unicode.IsPrint(r):
			b = append(b, string(r)...)
		case r <= 0xff:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r <= 0xffff:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}

	return append(b, quote)
}
