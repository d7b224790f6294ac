package jinja

import (
	"math"
	"strings"
)

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
func never(any) bool        { return false }

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
	"callable":  ofType(isType[*macro]),
	"escaped":   ofType(never), // there is no autoescape

	"eq":          comparing("=="),
	"equalto":     comparing("=="),
	"==":          comparing("=="),
	"ne":          comparing("!="),
	"!=":          comparing("!="),
	"lt":          comparing("<"),
	"lessthan":    comparing("<"),
	"<":           comparing("<"),
	"le":          comparing("<="),
	"<=":          comparing("<="),
	"gt":          comparing(">"),
	"greaterthan": comparing(">"),
	">":           comparing(">"),
	"ge":          comparing(">="),
	">=":          comparing(">="),
	"in":          comparing("in"),
	"sameas":      testSameAs,

	"even":        func(x *run, v any, _ arguments) bool { return parity(v) == 0 },
	"odd":         func(x *run, v any, _ arguments) bool { return parity(v) == 1 },
	"divisibleby": testDivisibleBy,

	"lower": cased(strings.ToLower, strings.ToUpper),
	"upper": cased(strings.ToUpper, strings.ToLower),
}

func testDivisibleBy(x *run, v any, a arguments) bool {
	// By the operator itself, whose errors and types a division has in Python.
	rest := (&binaryExpr{op: "%", left: constant{v}, right: constant{a.must(0, "num")}}).eval(x)
	return !x.truth(rest)
}

func testSameAs(x *run, v any, a arguments) bool {
	other := a.must(0, "other")
	return typeName(v) == typeName(other) && x.equal(v, other)
}

// cased makes a test of a text's letters: at least one must change in the other case.
func cased(to, from func(string) string) test {
	return func(x *run, v any, _ arguments) bool {
		s := x.str(v)
		x.read(3 * len(s)) // changing the case is slower than reading
		return s != from(s) && s == to(s)
	}
}

// parity is 0 for an even number, 1 for an odd one, -1 for a fraction.
func parity(v any) int {
	n, ok := toNumber(v)
	if !ok {
		fail("asks whether %s is even or odd", typeName(v))
	}
	if i, ok := n.(int64); ok {
		return int(i & 1)
	}

	// Go's remainder keeps the sign.
	switch math.Abs(math.Mod(n.(float64), 2)) {
	case 0:
		return 0
	case 1:
		return 1
	}

	return -1
}
