package python

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// WidthMax bounds the width of a format spec, and the precision of a number.
const WidthMax = 10_000

// Spec is a format spec: [[fill]align][sign][#][0][width][grouping][.precision][type].
// The zero value asks for nothing.
type Spec struct {
	given     bool // it is not empty
	fill      rune // 0 means a space
	align     byte // one of < > = ^; 0 means the value's own
	sign      byte // one of + - and space; 0 means -
	alternate bool // #
	zero      bool // a 0 before the width, without a fill
	width     int
	grouping  byte // , or _; 0 means none
	precise   bool // it has a precision
	precision int
	kind      byte // the type; 0 means the value's own
}

// ParseSpec reads a spec whose fields have been filled in.
func ParseSpec(text string) (Spec, error) {
	s := Spec{given: text != ""}
	rest := s.alignment(text)
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		s.sign, rest = rest[0], rest[1:]
	}
	if rest != "" && rest[0] == '#' {
		s.alternate, rest = true, rest[1:]
	}
	// After a fill, a 0 is just the first digit of the width.
	if s.fill == 0 && rest != "" && rest[0] == '0' {
		s.zero, rest = true, rest[1:]
	}

	var ok bool
	if s.width, _, rest, ok = digits(rest); !ok || s.width > WidthMax {
		return s, fmt.Errorf("has a format spec with a width above %d", WidthMax)
	}
	if rest != "" && (rest[0] == ',' || rest[0] == '_') {
		s.grouping, rest = rest[0], rest[1:]
	}
	if rest != "" && rest[0] == '.' {
		s.precision, s.precise, rest, ok = digits(rest[1:])
		if !ok || !s.precise {
			return s, errors.New("has a format spec with a . that no precision follows")
		}
	}

	// Last comes the type; what is left over is a mistake.
	if len(rest) == 1 && strings.Contains("bcdeEfFgGnosxX%", rest) {
		s.kind, rest = rest[0], ""
	}
	if rest != "" {
		return s, fmt.Errorf(
			"has %q in a format spec, which Python does not know either; write {{ and }} for braces",
			language.Shorten(rest))
	}

	return s, nil
}

// IsGiven reports whether the spec asks for anything.
func (s Spec) IsGiven() bool { return s.given }

// alignment reads [[fill]align] and returns the rest.
func (s *Spec) alignment(text string) string {
	const aligns = "<>=^"
	r, size := utf8.DecodeRuneInString(text)
	if size > 0 && len(text) > size && strings.IndexByte(aligns, text[size]) >= 0 {
		s.fill, s.align = r, text[size]
		return text[size+1:]
	}
	if text != "" && strings.IndexByte(aligns, text[0]) >= 0 {
		s.align = text[0]
		return text[1:]
	}

	return text
}

// digits reads a decimal number. ok is false if it is too large.
func digits(text string) (n int, found bool, rest string, ok bool) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == 0 {
		return 0, false, text, true
	}
	n, err := strconv.Atoi(text[:end])

	return n, true, text[end:], err == nil && n <= math.MaxInt32
}

// Format writes a JSON value as Python's format() would after json.loads.
func (s Spec) Format(v json.RawMessage) (string, error) {
	switch c := v[0]; {
	case !s.given:
		return Str(v), nil
	case c == '"':
		return s.Text(Str(v))
	case c == 't':
		// True and false are the integers 1 and 0 to Python's format.
		return s.number("1")
	case c == 'f':
		return s.number("0")
	case c == '-' || c >= '0' && c <= '9':
		return s.number(string(v))
	case c == 'n':
		return "", errors.New("whose format spec does not fit null")
	}

	return "", errors.New("whose format spec does not fit an object or an array")
}

// Text writes a string.
func (s Spec) Text(text string) (string, error) {
	forNumbers := s.kind != 0 && s.kind != 's' ||
		s.sign != 0 || s.alternate || s.grouping != 0 || s.align == '='
	if forNumbers {
		return "", errors.New("whose format spec is for numbers, and the value is a text")
	}

	if s.precise {
		text = firstRunes(text, s.precision)
	}

	return s.pad("", text, '<'), nil
}

// firstRunes cuts a string to n characters.
func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}

	return text
}

// pad fills a text up to the width; with = between its sign and the rest. own is the
// value's own alignment.
func (s Spec) pad(sign, text string, own byte) string {
	lack := s.width - utf8.RuneCountInString(sign) - utf8.RuneCountInString(text)
	if lack <= 0 {
		return sign + text
	}

	fill, align := s.fill, s.align
	switch {
	case s.zero:
		fill = '0'
	case fill == 0:
		fill = ' '
	}
	// Without an alignment, numbers go right and strings go left; zeros go after the
	// sign.
	if align == 0 {
		align = own
		if s.zero && own == '>' {
			align = '='
		}
	}

	padding := func(n int) string { return strings.Repeat(string(fill), n) }
	switch align {
	case '<':
		return sign + text + padding(lack)
	case '^':
		return padding(lack/2) + sign + text + padding(lack-lack/2)
	case '=':
		return sign + padding(lack) + text
	}

	return padding(lack) + sign + text
}
