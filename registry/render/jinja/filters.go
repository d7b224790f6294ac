package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// filter makes a value from another one.
type filter func(x *run, v any, a arguments) any

// filterExpr is operand|name(args).
type filterExpr struct {
	operand expression
	name    string
	filter  filter
	args    *argumentExprs
}

func (e *filterExpr) eval(x *run) any { return e.apply(x, e.operand.eval(x)) }

func (e *filterExpr) apply(x *run, v any) any {
	x.step()
	return e.filter(x, v, e.args.eval(x, "the filter "+e.name))
}

// filters are the supported filters. init fills the map because map calls filters by
// their name, which would be an initialization cycle.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs":     filterAbs,
		"default": filterDefault,
		"d":       filterDefault,
		"float":   filterFloat,
		"int":     filterInt,
		"round":   filterRound,
		"length":  filterLength,
		"count":   filterLength,
		"string":  filterString,
		"safe":    filterString,
		"tojson":  filterToJSON,

		"first":      endFilter(0),
		"last":       endFilter(-1),
		"list":       filterList,
		"items":      filterItems,
		"join":       filterJoin,
		"reverse":    filterReverse,
		"map":        filterMap,
		"select":     selectFilter(true, false),
		"reject":     selectFilter(false, false),
		"selectattr": selectFilter(true, true),
		"rejectattr": selectFilter(false, true),

		"sort":     filterSort,
		"dictsort": filterDictsort,
		"max":      extremeFilter(true),
		"min":      extremeFilter(false),
		"unique":   filterUnique,

		"capitalize": textFilter(plain(capitalized)),
		"lower":      textFilter(plain(strings.ToLower)),
		"upper":      textFilter(plain(upper)),
		"title":      textFilter(plain(filterTitle)),
		"indent":     textFilter(filterIndent),
		"replace":    textFilter(filterReplace),
		"trim":       textFilter(filterTrim),
		"truncate":   textFilter(filterTruncate),
		"format":     filterFormat,
	}
}

// textFilter makes a filter that takes any value as a string.
func textFilter(f textFunction) filter {
	return func(x *run, v any, a arguments) any {
		s := x.str(v)
		// Enough for most results; those that can be longer pay for themselves.
		x.pay(2 * len(s))
		return f(x, s, a)
	}
}

func filterReplace(x *run, s string, a arguments) any {
	return x.replace(s, x.str(a.must(0, "old")), x.str(a.must(1, "new")), a.number(2, "count", -1))
}

func filterTrim(_ *run, s string, a arguments) any { return stripped(s, "strip", a) }

func filterTruncate(x *run, s string, a arguments) any {
	length := a.number(0, "length", 255)
	killWords := a.truth(1, "killwords", false)
	end := a.text(2, "end", "...")
	leeway := a.number(3, "leeway", 5)

	return x.truncated(s, length, killWords, end, leeway)
}

// test reports whether a value is something.
type test func(x *run, v any, a arguments) bool

// testExpr is "operand is name(args)".
type testExpr struct {
	operand expression
	name    string
	test    test
	args    *argumentExprs
}

func (e *testExpr) eval(x *run) any {
	x.step()
	return e.test(x, e.operand.eval(x), e.args.eval(x, "the test "+e.name))
}

// comparing makes a test that compares with one value.
func comparing(op string) test {
	return func(x *run, v any, a arguments) bool { return x.compare(op, v, a.must(0, "other")) }
}

// ofType makes a test of the value's type.
func ofType(is func(v any) bool) test {
	return func(_ *run, v any, _ arguments) bool { return is(v) }
}

func isType[T any](v any) bool { _, ok := v.(T); return ok }

// Go types of Jinja's types.
var (
	isString    = isType[string]
	isUndefined = isType[*undefined]
)

func isDefined(v any) bool  { return !isUndefined(v) }
func isInteger(v any) bool  { return isType[int64](v) || isType[bigInteger](v) }
func isNumber(v any) bool   { return isInteger(v) || isType[float64](v) || isType[bool](v) }
func isMapping(v any) bool  { return isType[*dictValue](v) || isType[*namespace](v) }
func isSequence(v any) bool { return isString(v) || isType[*listValue](v) || isType[*dictValue](v) }
func isIterable(v any) bool { return isSequence(v) || isUndefined(v) }

// tests are the supported tests.
var tests = map[string]test{
	"boolean":   ofType(isType[bool]),
	"defined":   ofType(isDefined),
	"undefined": ofType(isUndefined),
	"none":      ofType(func(v any) bool { return v == nil }),
	"true":      ofType(func(v any) bool { return v == true }),
	"false":     ofType(func(v any) bool { return v == false }),
	"integer":   ofType(isInteger),
	"float":     ofType(isType[float64]),
	"number":    ofType(isNumber),
	"string":    ofType(isString),
	"mapping":   ofType(isMapping),
	"sequence":  ofType(isSequence),
	"iterable":  ofType(isIterable),

	"eq":      comparing("=="),
	"equalto": comparing("=="),
	"==":      comparing("=="),
	"ne":      comparing("!="),
	"!=":      comparing("!="),
	"lt":      comparing("<"),
	"<":       comparing("<"),
	"le":      comparing("<="),
	"<=":      comparing("<="),
	"gt":      comparing(">"),
	">":       comparing(">"),
	"ge":      comparing(">="),
	">=":      comparing(">="),
	"in":      comparing("in"),
}

// endFilter makes first and last, from the index of the element.
func endFilter(index int64) filter {
	return func(x *run, v any, _ arguments) any {
		if !isString(v) {
			v = &listValue{items: x.list(v)}
		}
		if item, ok := x.item(v, index); ok {
			return item
		}
		return &undefined{}
	}
}

func filterList(x *run, v any, _ arguments) any { return &listValue{items: x.list(v)} }

func filterItems(x *run, v any, _ arguments) any {
	switch v := v.(type) {
	case *dictValue:
		return &listValue{items: x.pairs(v)}
	case *undefined:
		return &listValue{}
	}

	fail("takes the items of %s", typeName(v))
	return nil
}

func filterJoin(x *run, v any, a arguments) any {
	items := x.list(v)
	if attribute, ok := a.get(1, "attribute"); ok && attribute != nil {
		items = x.attributes(items, attribute)
	}

	return x.joined(items, a.text(0, "d", ""))
}

func filterReverse(x *run, v any, _ arguments) any {
	items := sliced(x, &sliceExpr{reverse: true}, x.list(v))
	if _, ok := v.(string); ok {
		return x.joined(items, "")
	}

	return &listValue{items: items}
}

// attributes returns the member of each item that a path such as a.b or 0.a leads to.
func (x *run) attributes(items []any, attribute any) []any {
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = x.attribute(item, attribute)
	}

	return out
}

func (x *run) attribute(item, attribute any) any {
	for _, key := range x.attributePath(attribute) {
		x.step()
		v, ok := x.item(item, key)
		if !ok {
			return &undefined{}
		}
		item = v
	}

	return item
}

func (x *run) attributePath(attribute any) []any {
	s, ok := attribute.(string)
	if !ok {
		return []any{attribute}
	}

	x.read(len(s))
	var path []any
	for _, key := range strings.Split(s, ".") {
		x.pay(32)
		if n, err := strconv.ParseInt(key, 10, 32); err == nil {
			path = append(path, n)
		} else {
			path = append(path, key)
		}
	}

	return path
}

func filterMap(x *run, v any, a arguments) any {
	items := x.list(v)
	// Only by its name: what comes first by position is a filter.
	if attribute, ok := a.get(len(a.list), "attribute"); ok {
		return &listValue{items: x.attributes(items, attribute)}
	}

	name := x.str(a.must(0, "filter"))
	filter, ok := filters[name]
	if !ok {
		fail("maps with the filter %s, which is not supported", language.Shorten(name))
	}

	// The arguments after the name belong to the filter that is applied.
	rest := a.rest()
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		x.step()
		out[i] = filter(x, item, rest)
	}

	return &listValue{items: out}
}

// selectFilter makes select, reject, selectattr and rejectattr.
func selectFilter(keep, byAttribute bool) filter {
	return func(x *run, v any, a arguments) any {
		items := x.list(v)
		attribute := any(nil)
		if byAttribute {
			attribute = a.must(0, "attribute")
			a = a.rest()
		}
		holds := x.selection(a)

		out := &listValue{}
		for _, item := range items {
			x.step()
			tested := item
			if byAttribute {
				tested = x.attribute(item, attribute)
			}
			if holds(tested) == keep {
				x.pay(16)
				out.items = append(out.items, item)
			}
		}

		return out
	}
}

// selection returns the test that the arguments name, with its own arguments; the truth
// of the value if they name none.
func (x *run) selection(a arguments) func(v any) bool {
	if len(a.list) == 0 {
		return x.truth
	}

	name := x.str(a.list[0])
	test, ok := tests[name]
	if !ok {
		fail("selects with the test %s, which is not supported", language.Shorten(name))
	}
	rest := a.rest()

	return func(v any) bool { return test(x, v, rest) }
}

func filterAbs(x *run, v any, _ arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("takes abs of %s", typeName(v))
	}

	if i, ok := n.(int64); ok {
		if i < 0 {
			return x.integers("-", 0, i)
		}
		return i
	}

	return math.Abs(n.(float64))
}

func filterDefault(x *run, v any, a arguments) any {
	_, isUndefined := v.(*undefined)
	if !isUndefined && (!a.truth(1, "boolean", false) || x.truth(v)) {
		return v
	}

	return a.or(0, "default_value", "")
}

func filterString(x *run, v any, _ arguments) any { return x.str(v) }

func filterToJSON(x *run, v any, a arguments) any { return x.toJSON(v, a.number(0, "indent", 0)) }

// readNumber returns a number, or what Python's int() or else float() make of a text.
func (x *run) readNumber(v any) (any, bool) {
	s, isText := v.(string)
	if !isText {
		return toNumber(v)
	}

	x.read(len(s))
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(s, 64)
	// Go's hexadecimal form is not part of it.
	return f, err == nil && !strings.ContainsAny(s, "xXpP")
}

func filterFloat(x *run, v any, a arguments) any {
	if n, ok := x.readNumber(v); ok {
		return toFloat(n)
	}
	// A text that cannot be read gives the default.
	return a.or(0, "default", 0.0)
}

func filterInt(x *run, v any, a arguments) any {
	if isType[bigInteger](v) {
		return v
	}

	n, ok := x.readNumber(v)
	if i, isInt := n.(int64); isInt {
		return i
	}
	if ok && math.Abs(n.(float64)) < 1<<63 {
		return int64(n.(float64))
	}
	return a.or(0, "default", int64(0))
}

func filterLength(x *run, v any, _ arguments) any {
	switch v := v.(type) {
	case string:
		x.read(len(v))
		return int64(utf8.RuneCountInString(v))
	case *listValue:
		return int64(len(v.items))
	case *dictValue:
		return int64(len(v.keys))
	case *undefined:
		// Reports it as missing.
		x.str(v)
		return int64(0)
	}

	fail("takes the length of %s", typeName(v))
	return nil
}

// roundings are the methods of round, but for common.
var roundings = map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor}

func filterRound(x *run, v any, a arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("rounds %s", typeName(v))
	}
	precision := a.number(0, "precision", 0)
	if precision > 300 || precision < -300 {
		fail("rounds to %d digits", precision)
	}

	// 10 to the power of 300 is still finite; the check above keeps it so.
	f, scale := toFloat(n), math.Pow(10, float64(precision))
	method := a.text(1, "method", "common")
	if rounded := roundings[method]; rounded != nil {
		return rounded(f*scale) / scale
	}
	if method != "common" {
		fail("rounds by %q; it may be common, ceil or floor", language.Shorten(method))
	}

	if _, isInt := n.(int64); isInt && precision >= 0 {
		return n
	}
	if precision < 0 {
		return math.RoundToEven(f*scale) / scale
	}

	// Through decimal, as Python rounds: f*scale would round a binary fraction that is
	// slightly off.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)

	return rounded
}
