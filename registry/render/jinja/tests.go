package jinja

import (
	"math"
	"strings"
)

// test answers whether a value is something.
type test func(x *run, v any, a arguments) bool

type testExpr struct {
	of   expression
	name string
	test test
	args *argumentExprs
}

func (e *testExpr) eval(x *run) any {
	x.step()
	return e.test(x, e.of.eval(x), e.args.eval(x, "the test "+e.name))
}

// comparing is a test against one value.
func comparing(op string) test {
	return func(x *run, v any, a arguments) bool { return x.compare(op, v, a.must(0, "other")) }
}

// ofType is a test for the type of a value.
func ofType(is func(v any) bool) test {
	return func(_ *run, v any, _ arguments) bool { return is(v) }
}

func isType[T any](v any) bool { _, ok := v.(T); return ok }

// tests are the tests that there are.
var tests map[string]test

func init() {
	isText, isUndefined := isType[string], isType[*undefined]
	isInt := func(v any) bool { return isType[int64](v) || isType[bigInteger](v) }
	isMapping := func(v any) bool { return isType[*dictValue](v) || isType[*namespace](v) }
	isSequence := func(v any) bool { return isText(v) || isType[*listValue](v) || isType[*dictValue](v) }
	tests = map[string]test{
		"boolean": ofType(isType[bool]), "callable": ofType(func(any) bool { return false }),
		"defined": ofType(func(v any) bool { return !isUndefined(v) }), "undefined": ofType(isUndefined),
		"divisibleby": func(x *run, v any, a arguments) bool {
			rest := (&binaryExpr{op: "%", left: constant{v}, right: constant{a.must(0, "num")}}).eval(x)
			return !x.truth(rest)
		},
		"eq": comparing("=="), "equalto": comparing("=="), "==": comparing("=="), "ne": comparing("!="), "!=": comparing("!="),
		"lt": comparing("<"), "lessthan": comparing("<"), "<": comparing("<"), "le": comparing("<="), "<=": comparing("<="),
		"gt": comparing(">"), "greaterthan": comparing(">"), ">": comparing(">"), "ge": comparing(">="), ">=": comparing(">="),
		"in": comparing("in"), "escaped": ofType(func(any) bool { return false }),
		"even":  func(x *run, v any, _ arguments) bool { return parity(v) == 0 },
		"odd":   func(x *run, v any, _ arguments) bool { return parity(v) == 1 },
		"false": ofType(func(v any) bool { return v == false }), "true": ofType(func(v any) bool { return v == true }),
		"none": ofType(func(v any) bool { return v == nil }), "float": ofType(isType[float64]), "integer": ofType(isInt),
		"number":   ofType(func(v any) bool { return isInt(v) || isType[float64](v) || isType[bool](v) }),
		"iterable": ofType(func(v any) bool { return isSequence(v) || isUndefined(v) }), "mapping": ofType(isMapping), "sequence": ofType(isSequence), "string": ofType(isText),
		"filter": func(x *run, v any, _ arguments) bool { return filters[x.str(v)] != nil },
		"test":   func(x *run, v any, _ arguments) bool { return tests[x.str(v)] != nil },
		"lower": func(x *run, v any, _ arguments) bool {
			s := x.str(v)
			x.read(3 * len(s)) // changing its case is slower than reading
			return s != strings.ToUpper(s) && s == strings.ToLower(s)
		},
		"upper": func(x *run, v any, _ arguments) bool {
			s := x.str(v)
			x.read(3 * len(s)) // changing its case is slower than reading
			return s != strings.ToLower(s) && s == strings.ToUpper(s)
		},
		"sameas": func(x *run, v any, a arguments) bool {
			other := a.must(0, "other")
			return typeName(v) == typeName(other) && x.equal(v, other)
		},
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
	switch math.Abs(math.Mod(n.(float64), 2)) {
	case 0:
		return 0
	case 1:
		return 1
	}
	return -1
}
