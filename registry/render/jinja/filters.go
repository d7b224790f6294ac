package jinja

import (
	"strings"
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
		"max":      filterMax,
		"min":      filterMin,
		"unique":   filterUnique,

		"capitalize": plainFilter(capitalized),
		"lower":      plainFilter(strings.ToLower),
		"upper":      plainFilter(upper),
		"title":      plainFilter(titleCase),
		"indent":     textFilter(filterIndent),
		"replace":    textFilter(filterReplace),
		"trim":       textFilter(filterTrim),
		"truncate":   textFilter(filterTruncate),
		"format":     filterFormat,
	}
}

// textFilter makes a filter that takes any value as a string.
func textFilter(f func(x *run, s string, a arguments) any) filter {
	return func(x *run, v any, a arguments) any {
		s := x.str(v)
		// Enough for most results; those that can be longer pay for themselves.
		x.pay(2 * len(s))
		return f(x, s, a)
	}
}

// plainFilter makes a textFilter that needs neither the run nor arguments.
func plainFilter(f func(string) string) filter {
	return textFilter(func(_ *run, s string, _ arguments) any { return f(s) })
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
