// Package fstring parses and renders texts in the format grammar of Python's str.format.
// Rendering reads JSON values only; its work and its output are bounded.
package fstring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render/language"
)

// Bounds of one text.
const (
	fieldsMax = 10_000 // replacement fields
	pathMax   = 32     // steps into a value: {a.b[0]} has two
)

// Format is a text in Python's format grammar: {name}, {name!r}, {name:spec},
// {name.member}, {name[0]}, {{ and }}. Python documents it under "Format String Syntax".
//
// Two things differ. A name is an identifier, with - allowed inside it; {} and {0} are
// not fields, because variables have names. And .member and [key] reach into the members
// and elements of a JSON value, never into anything else.
//
// A Format never changes and is safe for concurrent use.
type Format struct{ parts []part }

// part is a literal text and the field after it. The last part may have no field.
type part struct {
	literal string
	field   *field
}

type field struct {
	source     string   // the name with its path, as written
	name       string   // the variable
	path       []string // members and indexes to reach into
	conversion byte     // 'r' or 's'; 0 if none
	spec
}

// Parse reads a text. Its error is written for a person who wrote JSON braces and meant
// them.
func Parse(text string) (*Format, error) {
	p := &parser{}
	f, err := p.parse(text)
	if e, ok := err.(*language.Error); ok {
		e.At = p.at
	}

	return f, language.Locate(err, text)
}

// Variables lists the variables of the text, each once, in order of appearance.
func (f *Format) Variables() []string {
	var names language.Names
	for _, p := range f.parts {
		if p.field != nil {
			names.Add(p.field.name)
		}
	}

	return names.List
}

// inBraces finds a variable's name, or one with members, in one pair of braces.
var inBraces = regexp.MustCompile(`(?:^|[^{])\{\s*([\pL_][\pL\p{Nd}\pM_.-]*)\s*\}(?:[^}]|$)`)

// Doubled returns the first name in doubled braces, or "" if there is none. Other template languages
// take it for a variable.
func (f *Format) Doubled() string {
	for _, p := range f.parts {
		if found := inBraces.FindStringSubmatch(p.literal); found != nil {
			return found[1]
		}
	}

	return ""
}

type parser struct {
	fields int
	at     int // the byte of the current brace
}

const (
	singleBrace = "has a single brace; write {{ and }} for braces"
	openBrace   = "has a { that is not closed; write {{ and }} for braces"
)

// fail ends the parse or the rendering by a panic, which language.Recover turns into an error.
func fail(format string, args ...any) {
	panic(&language.Error{Message: fmt.Sprintf(format, args...)})
}

func (p *parser) parse(text string) (_ *Format, err error) {
	defer language.Recover(&err)

	f := &Format{}
	whole := len(text)
	var literal strings.Builder
	for {
		i := strings.IndexAny(text, "{}")
		if i < 0 {
			break
		}
		literal.WriteString(text[:i])
		p.at = whole - len(text) + i

		// A doubled brace is a literal brace.
		brace := text[i]
		text = text[i+1:]
		switch {
		case text != "" && text[0] == brace:
			literal.WriteByte(brace)
			text = text[1:]
			continue
		case brace == '}' || text == "":
			fail(singleBrace)
		case p.fields == fieldsMax:
			fail("has more than %d fields", fieldsMax)
		}

		p.fields++
		field, rest := readField(text)
		f.parts = append(f.parts, part{literal.String(), field})
		literal.Reset()
		text = rest
	}

	literal.WriteString(text)
	if literal.Len() > 0 {
		f.parts = append(f.parts, part{literal: literal.String()})
	}

	return f, nil
}

// placeForm matches the beginning of a field: the name of a variable and the path from there. Within brackets any
// character is part of a key.
var placeForm = regexp.MustCompile(`^(?:[^\[{}:!]|\[[^\]]*\])*`)

// readField reads a field, whose { was read, and returns it with the text after its }.
func readField(text string) (f *field, rest string) {
	place := placeForm.FindString(text)
	rest = text[len(place):]
	switch {
	case rest == "" || rest[0] == '[':
		fail(openBrace)
	case rest[0] == '{':
		fail(singleBrace)
	}
	f = parsePlace(place)

	// After the place: a conversion, a format spec, or the end.
	if rest[0] == '!' {
		if !conversionForm.MatchString(rest) {
			fail("has a ! in a field that is not followed by r or s")
		}
		f.conversion, rest = rest[1], rest[2:]
	}
	end := strings.IndexAny(rest, "{}")
	switch {
	case end < 0:
		fail(openBrace)
	case rest[end] == '{':
		fail("has a field within a field's format spec, which is not supported")
	}
	if end > 0 {
		f.spec = parseSpec(rest[1:end])
	}

	return f, rest[end+1:]
}

// The parts of a field: the name of a variable, with - allowed inside it, the path from there, with each of its
// steps, and a conversion.
var (
	nameForm       = regexp.MustCompile(`^[\pL_][\pL\p{Nd}\pM_-]*`)
	pathForm       = regexp.MustCompile(`^(?:\.[^.\[]+|\[[^\]]+\])*$`)
	stepForm       = regexp.MustCompile(`\.([^.\[]+)|\[([^\]]+)\]`)
	conversionForm = regexp.MustCompile(`^![rs][:}]`)
)

// parsePlace reads name.member[key]...
func parsePlace(text string) *field {
	// The source is kept for errors, which show what the person wrote.
	f := &field{source: text, name: nameForm.FindString(text)}
	path := text[len(f.name):]
	if f.name == "" || path != "" && path[0] != '.' && path[0] != '[' {
		fail("has {%s}, which is no variable's name; write {{ and }} for braces",
			language.Shorten(text))
	}

	if path == "" {
		return f
	}

	for _, step := range stepForm.FindAllStringSubmatch(path, -1) {
		f.path = append(f.path, step[1]+step[2])
	}
	if !pathForm.MatchString(path) || len(f.path) > pathMax {
		fail("has {%s}, whose path cannot be followed; write {name.member} or {name[0]}",
			language.Shorten(f.source))
	}

	return f
}

// Bounds of one rendering, over all texts of a blueprint.
const (
	// workBytesMax bounds the bytes of variables that are read: {a[0]} reads a up to its
	// end.
	workBytesMax = 128 << 20

	// reprCost is how many bytes could be read in the time that it takes to write one as
	// Python's repr.
	reprCost = 8
)

// AppendTo appends the rendered text to b. A string gives its text, anything else what
// Python's str() would print. A field without a value renders as empty text, and is noted
// as missing.
//
// With an error there is no text: the values do not fit the format specs (Python would
// raise ValueError or TypeError), or a bound was exceeded.
func (f *Format) AppendTo(b []byte, r *language.Rendering) (_ []byte, err error) {
	defer language.Recover(&err)

	for i := range f.parts {
		p := &f.parts[i]
		write(r, len(p.literal))
		b = append(b, p.literal...)
		if p.field == nil {
			continue
		}
		// Counted after writing: how long a field becomes is known only then. One
		// field is bounded by its value and its width.
		before := len(b)
		b = p.field.appendTo(b, r)
		write(r, len(b)-before)
	}

	return b, nil
}

// write counts bytes of output.
func write(r *language.Rendering, bytes int) {
	if r.Output -= bytes; r.Output < 0 {
		fail("%v", language.ErrOutput)
	}
}

// read spends what reading a value costs.
func read(r *language.Rendering, v json.RawMessage, cost int) {
	if r.Work += cost * len(v); r.Work > workBytesMax {
		fail("takes too much work to render; pass the parts of large values as separate variables")
	}
}

func (f *field) appendTo(b []byte, r *language.Rendering) []byte {
	value := f.find(r)
	if value == nil {
		return b
	}

	// A string is copied as it is; anything else is written token by token.
	cost := 1
	if value[0] != '"' || f.conversion == 'r' {
		cost = reprCost
	}
	read(r, value, cost)

	switch {
	case f.conversion == 'r':
		return append(b, f.text(string(language.AppendRepr(nil, value)))...)
	// The usual case, without a copy.
	case !f.given:
		return language.AppendStr(b, value)
	case f.conversion == 's':
		return append(b, f.text(language.Str(value))...)
	}

	return append(b, f.format(value)...)
}

// find returns the value of a field. If there is none it returns nil and notes the
// missing variable.
func (f *field) find(r *language.Rendering) json.RawMessage {
	value, ok := r.Variables[f.name]
	if !ok {
		r.Miss(f.name)
		return nil
	}

	for _, step := range f.path {
		// A member is found by reading the value up to it.
		read(r, value, 1)
		value = reach(value, step)
		if value == nil {
			r.Miss(f.source)
			return nil
		}
	}

	return value
}

// reach returns a member of an object or an element of an array; nil if there is none. Of
// a member that appears twice it returns the last, as Python's json does.
func reach(value json.RawMessage, step string) (found json.RawMessage) {
	switch value[0] {
	case '{':
		for m := range jsonscan.Members(value) {
			if m.Name == step {
				// The last of several, as JSON is read elsewhere.
				found = m.Value
			}
		}
	case '[':
		index, err := strconv.ParseUint(step, 10, 31)
		if err != nil {
			return nil
		}
		for i, e := range jsonscan.Elements(value) {
			if i == int(index) {
				return e
			}
		}
	}

	return found
}

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
