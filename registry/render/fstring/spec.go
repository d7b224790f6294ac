package fstring

import (
	"cmp"
	"encoding/json"
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
func parseSpec(text string) spec {
	m := specForm.FindStringSubmatch(text)
	if m == nil {
		fail("has the format spec %q, which is not supported; write {{ and }} for braces",
			language.Shorten(text))
	}

	s := spec{
		given:     text != "",
		fill:      m[1],
		align:     m[2],
		width:     bounded(m[4], 0),
		grouped:   m[5] != "",
		precision: bounded(m[6], 6),
		kind:      m[7],
	}
	// After a fill, a 0 is just the first digit of the width.
	if m[3] != "" && s.fill == "" {
		s.fill = "0"
	}

	switch {
	case max(s.width, s.precision) > widthMax:
		fail("has a format spec with a width or a precision above %d", widthMax)
	case m[6] != "" && s.kind != "f" && s.kind != "%":
		fail("has a format spec with a precision and without f or %%, which is not supported")
	case s.grouped && s.fill == "0":
		fail("has a format spec with commas and zeros, which is not supported")
	}

	return s
}

// bounded reads a decimal number; one that is too large gives a number above widthMax.
func bounded(digits string, absent int) int {
	if digits == "" {
		return absent
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return widthMax + 1
	}

	return n
}

// format writes a JSON value as Python's format() would after json.loads.
func (f *field) format(v json.RawMessage) string {
	switch c := v[0]; {
	case c == '"':
		return f.text(language.Str(v))
	case c == 't':
		// True and false are the integers 1 and 0 to Python's format.
		return f.number("1")
	case c == 'f':
		return f.number("0")
	case c == '-' || c >= '0' && c <= '9':
		return f.number(string(v))
	case c == 'n':
		f.misfit("does not fit null")
	}
	f.misfit("does not fit an object or an array")

	return ""
}

// misfit ends the rendering.
func (f *field) misfit(reason string) {
	fail("has {%s}, whose format spec %s", language.Shorten(f.source), reason)
}

// text writes a string.
func (f *field) text(text string) string {
	if f.kind != "" && f.kind != "s" || f.grouped {
		f.misfit("is for numbers, and the value is a text")
	}

	return f.pad("", text, "<")
}

// number writes a JSON number. Python reads one without fraction and exponent as an int,
// any other as a float.
func (f *field) number(number string) string {
	isInteger := language.IsInteger(number)
	switch {
	case f.kind == "s":
		f.misfit("is for texts, and the value is a number")
	case f.kind == "d" && !isInteger:
		f.misfit("is for integers, and the value is a fraction")
	case isInteger && (f.kind == "" || f.kind == "d"):
		digits, negative := strings.CutPrefix(number, "-")
		return f.signed(negative && digits != "0", digits)
	}

	x := language.ParseFloat(number)

	// Signbit, not < 0: Python writes the sign of -0.0 too.
	return f.signed(math.Signbit(x), f.float(math.Abs(x)))
}

// float writes a float that is not negative.
func (s spec) float(x float64) string {
	unit := ""
	if s.kind == "%" {
		x, unit = x*100, "%"
	}
	if s.kind == "" || math.IsInf(x, 1) {
		return language.FloatRepr(x) + unit
	}

	return strconv.FormatFloat(x, 'f', s.precision, 64) + unit
}

// signed writes a number with its sign, and fills up to the width.
func (s spec) signed(negative bool, text string) string {
	if s.grouped {
		text = withCommas(text)
	}
	sign := ""
	if negative {
		sign = "-"
	}

	return s.pad(sign, text, ">")
}

// withCommas groups the digits before the point by thousands.
func withCommas(text string) string {
	whole := len(text) - len(strings.TrimLeft(text, "0123456789"))
	var b strings.Builder
	for i, d := range []byte(text[:whole]) {
		if i > 0 && (whole-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(d)
	}

	return b.String() + text[whole:]
}

// pad fills a text up to the width. own is the value's own alignment; the zeros of a number
// go after its sign.
func (s spec) pad(sign, text, own string) string {
	lack := s.width - len(sign) - utf8.RuneCountInString(text)
	if lack <= 0 {
		return sign + text
	}

	fill, align := s.fill, s.align
	fill = cmp.Or(fill, " ")
	// Without an alignment, numbers go right and strings go left.
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
