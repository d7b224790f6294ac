package fstring

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// widthMax bounds the width of a format spec, and the precision of a number.
const widthMax = 10_000

// spec is a format spec: [[fill]align][0][width][,][.precision][type]. An align is one of
// < > ^, a type one of s d f %, and a precision needs f or %. Python has more, which public
// prompts do not use. The zero value asks for nothing.
type spec struct {
	given     bool
	fill      string
	align     string // "" means the value's own
	width     int
	grouped   bool // by commas
	precision int
	kind      string // the type; "" means the value's own
}

var specForm = regexp.MustCompile(`^(?s:(?:(.)?([<>^]))?(0?)(\d*)(,?)(?:\.(\d+))?([sdf%]?))$`)

// parseSpec reads a spec.
func parseSpec(text string) (spec, error) {
	m := specForm.FindStringSubmatch(text)
	if m == nil {
		return spec{}, fmt.Errorf(
			"has the format spec %q, which is not supported; write {{ and }} for braces",
			language.Shorten(text))
	}

	s := spec{given: text != "", fill: m[1], align: m[2], grouped: m[5] != "", precision: 6, kind: m[7]}
	// After a fill, a 0 is just the first digit of the width.
	if m[3] != "" && s.fill == "" {
		s.fill = "0"
	}
	for _, n := range []struct {
		digits string
		to     *int
	}{{m[4], &s.width}, {m[6], &s.precision}} {
		value, err := strconv.Atoi(n.digits)
		switch {
		case n.digits == "":
		case err != nil, value > widthMax:
			return s, fmt.Errorf("has a format spec with a width or a precision above %d", widthMax)
		default:
			*n.to = value
		}
	}

	switch {
	case m[6] != "" && s.kind != "f" && s.kind != "%":
		return s, errors.New("has a format spec with a precision and without f or %, which is not supported")
	case s.grouped && s.fill == "0":
		return s, errors.New("has a format spec with commas and zeros, which is not supported")
	}

	return s, nil
}

// format writes a JSON value as Python's format() would after json.loads.
func (s spec) format(v json.RawMessage) (string, error) {
	switch c := v[0]; {
	case !s.given:
		return language.Str(v), nil
	case c == '"':
		return s.text(language.Str(v))
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

// text writes a string.
func (s spec) text(text string) (string, error) {
	if s.kind != "" && s.kind != "s" || s.grouped {
		return "", errors.New("whose format spec is for numbers, and the value is a text")
	}

	return s.pad("", text, "<"), nil
}

// number writes a JSON number. Python reads one without fraction and exponent as an int,
// any other as a float.
func (s spec) number(number string) (string, error) {
	isInteger := language.IsInteger(number)
	switch {
	case s.kind == "s":
		return "", errors.New("whose format spec is for texts, and the value is a number")
	case s.kind == "d" && !isInteger:
		return "", errors.New("whose format spec is for integers, and the value is a fraction")
	case isInteger && (s.kind == "" || s.kind == "d"):
		digits, negative := strings.CutPrefix(number, "-")
		return s.signed(negative && digits != "0", digits), nil
	}

	x := language.ParseFloat(number)
	// Signbit, not < 0: Python writes the sign of -0.0 too.
	negative, x := math.Signbit(x), math.Abs(x)
	text := language.FloatRepr(x)
	switch {
	case s.kind == "":
	case s.kind == "%":
		text = floatText(x*100, s.precision) + "%"
	default:
		text = floatText(x, s.precision)
	}

	return s.signed(negative, text), nil
}

func floatText(x float64, precision int) string {
	if math.IsInf(x, 1) {
		return "inf"
	}
	return strconv.FormatFloat(x, 'f', precision, 64)
}

// signed groups the digits before the point, and fills up to the width.
func (s spec) signed(negative bool, text string) string {
	whole := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if s.grouped {
		var b strings.Builder
		for i, d := range []byte(text[:whole]) {
			if i > 0 && (whole-i)%3 == 0 {
				b.WriteByte(',')
			}
			b.WriteByte(d)
		}
		text = b.String() + text[whole:]
	}

	sign := ""
	if negative {
		sign = "-"
	}

	return s.pad(sign, text, ">")
}

// pad fills a text up to the width. own is the value's own alignment; the zeros of a number
// go after its sign.
func (s spec) pad(sign, text, own string) string {
	lack := s.width - len(sign) - utf8.RuneCountInString(text)
	if lack <= 0 {
		return sign + text
	}

	fill, align := s.fill, s.align
	if fill == "" {
		fill = " "
	}
	if align == "" {
		align = own
		if fill == "0" && own == ">" {
			return sign + strings.Repeat(fill, lack) + text
		}
	}

	padding := func(n int) string { return strings.Repeat(fill, n) }
	switch align {
	case "<":
		return sign + text + padding(lack)
	case "^":
		return padding(lack/2) + sign + text + padding(lack-lack/2)
	}

	return padding(lack) + sign + text
}
