package jinja

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// texts makes a list value of strings.
func (x *run) texts(list []string) *listValue {
	x.pay(32 * len(list))
	l := &listValue{items: make([]any, len(list))}
	for i, s := range list {
		l.items[i] = s
	}

	return l
}

// stripped is Python's strip, lstrip or rstrip.
func stripped(s, method string, a arguments) string {
	cut := unicode.IsSpace
	if set, ok := a.get(0, "chars"); ok && set != nil {
		chars := a.x.str(set)
		a.x.pay(len(chars))
		runes := make(map[rune]bool)
		for _, r := range chars {
			runes[r] = true
		}
		cut = func(r rune) bool { return runes[r] }
	}

	if method != "rstrip" {
		s = strings.TrimLeftFunc(s, cut)
	}
	if method != "lstrip" {
		s = strings.TrimRightFunc(s, cut)
	}

	return s
}

// split is Python's split.
func (x *run) split(s string, a arguments) *listValue {
	separator, given := a.get(0, "sep")
	most := a.number(1, "maxsplit", -1)
	// There are at most as many parts as bytes.
	x.pay(16 * len(s))
	if !given || separator == nil {
		return x.texts(splitBlank(s, most))
	}

	sep := x.str(separator)
	if sep == "" {
		fail("splits at an empty text")
	}
	if most >= 0 {
		// Go counts parts, Python counts cuts.
		most++
	}

	return x.texts(strings.SplitN(s, sep, most))
}

// splitBlank splits at runs of whitespace, at most so many times unless that is negative.
func splitBlank(s string, most int) (parts []string) {
	for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; most-- {
		i := strings.IndexFunc(s, unicode.IsSpace)
		if i < 0 || most == 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], unicode.IsSpace)
	}

	return parts
}

// lines splits at line breaks. One at the end does not begin another line.
func lines(s string) []string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if s == "" {
		return nil
	}

	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

func (x *run) replace(s, old, with string, count int) string {
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	// The result, at its longest.
	x.pay(len(s) + n*max(len(with), len(old)))

	return strings.Replace(s, old, with, count)
}

// joined joins values, as strings.
func (x *run) joined(items []any, separator string) string {
	var b strings.Builder
	for i, item := range items {
		s := x.str(item)
		if i > 0 {
			x.pay(len(separator))
			b.WriteString(separator)
		}
		x.pay(len(s) + 1)
		b.WriteString(s)
	}

	return b.String()
}

// upper returns s in upper case. ß, which has no single upper case letter, becomes SS, as
// in Python.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalized(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:size]) + strings.ToLower(s[size:])
}

// titled returns a text with a capital at the beginning of each word. separates reports
// whether a word begins after a character.
func titled(s string, separates func(rune) bool) string {
	before := ' '
	return strings.Map(func(r rune) rune {
		out := unicode.ToLower(r)
		if separates(before) {
			out = unicode.ToTitle(r)
		}
		before = r
		return out
	}, s)
}

// methodTitle is the method title: every run of letters begins with a capital.
func methodTitle(s string) string {
	return titled(s, func(r rune) bool { return !unicode.IsLetter(r) })
}

// filterTitle is the filter title: words end at whitespace and at - ( { [ <.
func filterTitle(s string) string {
	return titled(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("-({[<", r) })
}

// indent puts width before every line except the first and blank ones, as Jinja's filter
// does.
func (x *run) indent(s, width string, first, blank bool) string {
	list := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	x.payTimes(len(width)+1, int64(len(list)))
	x.pay(2*len(s) + 16*len(list))

	var b strings.Builder
	for i, line := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		if (i > 0 || first) && (line != "" || blank || i == 0) {
			b.WriteString(width)
		}
		b.WriteString(line)
	}

	return b.String()
}

// truncated cuts a string to length characters, its ending included, unless it is at most
// leeway longer.
func (x *run) truncated(s string, length int, killWords bool, end string, leeway int) string {
	runes := x.runes(s)
	if len(runes) <= length+leeway {
		return s
	}
	tail := utf8.RuneCountInString(end)
	if length < tail {
		fail("truncates to fewer than the %d characters of the ending", tail)
	}

	// Cut at the last space before the bound, unless words may be cut.
	kept := string(runes[:length-tail])
	if !killWords {
		if i := strings.LastIndexByte(kept, ' '); i >= 0 {
			kept = kept[:i]
		}
	}

	return kept + end
}

func filterIndent(x *run, s string, a arguments) any {
	width, ok := a.get(0, "width")
	blanks, isText := width.(string)
	if !ok || !isText {
		n := a.number(0, "width", 4)
		x.payTimes(1, int64(n))
		blanks = strings.Repeat(" ", max(n, 0))
	}

	return x.indent(s, blanks, a.truth(1, "first", false), a.truth(2, "blank", false))
}

// formatPlace matches the place of a value in a format, such as %s, %d or %.2f, and in its group
// those that are supported. %% is a percent sign.
var formatPlace = regexp.MustCompile(`%(?:%|([-0]?\d{0,4}(?:\.\d{1,4})?[sdf])|(?s:.?))`)

// unsupportedPlace returns the first place of a format that is not supported, "" if all are.
func unsupportedPlace(source string) string {
	for _, m := range formatPlace.FindAllStringSubmatch(source, -1) {
		if m[0] != "%%" && m[1] == "" {
			return m[0]
		}
	}

	return ""
}

// filterFormat formats as Python's % does, by position.
func filterFormat(x *run, v any, a arguments) any {
	source := x.str(v)
	var b strings.Builder
	for next := 0; ; {
		m := formatPlace.FindStringIndex(source)
		if m == nil {
			break
		}
		b.WriteString(source[:m[0]])
		place := source[m[0]:m[1]]
		source = source[m[1]:]
		if place == "%%" {
			b.WriteByte('%')
			continue
		}

		// A width may make the text much longer than the value.
		text := x.formatted(place, a.must(next, "a value for each %"))
		x.pay(len(text))
		b.WriteString(text)
		next++
	}
	b.WriteString(source)

	return b.String()
}

func (x *run) formatted(place string, v any) string {
	if unsupportedPlace(place) != "" {
		fail("has %s in a format, which is not supported", place)
	}
	letter := place[len(place)-1]
	if letter == 's' {
		return fmt.Sprintf(place, x.str(v))
	}

	n, ok := toNumber(v)
	switch {
	case !ok:
		fail("formats %s as a number", typeName(v))
	case letter == 'f':
		return fmt.Sprintf(place, toFloat(n))
	}
	// As in Python, %d cuts off a fraction.
	i, ok := n.(int64)
	if !ok {
		i = int64(n.(float64))
	}

	return fmt.Sprintf(place, i)
}

// textFunction makes a value from a string.
type textFunction func(x *run, s string, a arguments) any

// plain makes a textFunction that needs neither the run nor arguments.
func plain(f func(string) string) textFunction {
	return func(_ *run, s string, _ arguments) any { return f(s) }
}

// textMethods are the methods of strings.
var textMethods = map[string]textFunction{
	"upper":      plain(upper),
	"lower":      plain(strings.ToLower),
	"title":      plain(methodTitle),
	"capitalize": plain(capitalized),
	"strip":      stripMethod("strip"),
	"lstrip":     stripMethod("lstrip"),
	"rstrip":     stripMethod("rstrip"),
	"split":      func(x *run, s string, a arguments) any { return x.split(s, a) },
	"splitlines": func(x *run, s string, _ arguments) any { return x.texts(lines(s)) },
	"join":       func(x *run, s string, a arguments) any { return x.joined(x.list(a.must(0, "iterable")), s) },
	"replace":    filterReplace,
	"startswith": affixMethod("prefix", strings.HasPrefix),
	"endswith":   affixMethod("suffix", strings.HasSuffix),
	"find":       findMethod("find"),
	"rfind":      findMethod("rfind"),
	"index":      findMethod("index"),
}

// affixMethod makes startswith and endswith, whose argument may be a list of texts.
func affixMethod(argument string, has func(s, affix string) bool) textFunction {
	return func(x *run, s string, a arguments) any {
		affixes := a.must(0, argument)
		if l, ok := affixes.(*listValue); ok {
			return slices.ContainsFunc(l.items, func(e any) bool {
				x.step()
				return has(s, x.str(e))
			})
		}

		return has(s, x.str(affixes))
	}
}

// dictMethods lists the methods of mappings.
var dictMethods = []string{"get", "items", "keys", "values"}

type methodExpr struct {
	operand expression
	name    string
	args    *argumentExprs
}

func (e *methodExpr) eval(x *run) any {
	x.step()
	operand := e.operand.eval(x)
	a := e.args.eval(x, e.name)

	var v any
	ok := false
	switch operand := operand.(type) {
	case string:
		method := textMethods[e.name]
		ok = method != nil
		if ok {
			// Enough for most results; those that can be longer pay for themselves.
			x.pay(2 * len(operand))
			v = method(x, operand, a)
		}
	case *dictValue:
		v, ok = x.dictMethod(operand, e.name, a)
	case *listValue:
		v, ok = x.listMethod(operand, e.name, a)
	case *undefined:
		return operand
	}
	if !ok {
		fail("calls the method %s of %s", e.name, typeName(operand))
	}

	return v
}

func (x *run) dictMethod(d *dictValue, name string, a arguments) (any, bool) {
	switch name {
	case "get":
		if v, ok := d.get(x, a.must(0, "key")); ok {
			return v, true
		}
		return a.or(1, "default", nil), true
	case "items":
		return &listValue{items: x.pairs(d)}, true
	case "keys":
		// Not copied, because values never change.
		return &listValue{items: d.keys}, true
	case "values":
		return &listValue{items: d.values}, true
	}

	return nil, false
}

func (x *run) listMethod(l *listValue, name string, a arguments) (any, bool) {
	if name != "index" {
		return nil, false
	}

	for i, item := range l.items {
		if x.equal(item, a.must(0, "value")) {
			return int64(i), true
		}
	}
	fail("calls index for a value that is not in the list")
	return nil, false
}

// stripMethod makes strip, lstrip and rstrip.
func stripMethod(method string) textFunction {
	return func(_ *run, s string, a arguments) any { return stripped(s, method, a) }
}

// findMethod makes find, rfind and index, which return the position of a text in the string, in characters. Without
// it, it is -1, and index fails.
func findMethod(method string) textFunction {
	return func(_ *run, s string, a arguments) any {
		sub := a.text(0, "sub", "")
		i := strings.Index(s, sub)
		if method == "rfind" {
			i = strings.LastIndex(s, sub)
		}
		if i < 0 && method == "index" {
			fail("calls index for a text that is not in the other")
		}
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}

		return int64(i)
	}
}
