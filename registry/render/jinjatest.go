package render

import (
	"math"
	"strings"
)

// jinjaTest answers whether a value is something.
type jinjaTest func(x *jinjaRun, v any, a jinjaArgs) bool

type jinjaTestCall struct {
	of   jinjaExpr
	name string
	test jinjaTest
	args *jinjaArguments
}

func (e *jinjaTestCall) eval(x *jinjaRun) any {
	x.step()
	return e.test(x, e.of.eval(x), e.args.eval(x, "the test "+e.name))
}

// comparing is a test against one value.
func comparing(op string) jinjaTest {
	return func(x *jinjaRun, v any, a jinjaArgs) bool { return x.compare(op, v, a.must(0, "other")) }
}

// ofType is a test for the type of a value.
func ofType(is func(v any) bool) jinjaTest {
	return func(_ *jinjaRun, v any, _ jinjaArgs) bool { return is(v) }
}

func isType[T any](v any) bool { _, ok := v.(T); return ok }

// jinjaTests are the tests that there are.
var jinjaTests map[string]jinjaTest

func init() {
	isText, isUndefined := isType[string], isType[*jinjaUndefined]
	isInt := func(v any) bool { return isType[int64](v) || isType[jinjaBig](v) }
	isMapping := func(v any) bool { return isType[*jinjaDict](v) || isType[*jinjaNamespace](v) }
	isSequence := func(v any) bool { return isText(v) || isType[*jinjaList](v) || isType[*jinjaDict](v) }
	jinjaTests = map[string]jinjaTest{
		"boolean": ofType(isType[bool]), "callable": ofType(func(any) bool { return false }),
		"defined": ofType(func(v any) bool { return !isUndefined(v) }), "undefined": ofType(isUndefined),
		"divisibleby": func(x *jinjaRun, v any, a jinjaArgs) bool {
			rest := (&jinjaBinary{op: "%", left: jinjaConst{v}, right: jinjaConst{a.must(0, "num")}}).eval(x)
			return !x.truth(rest)
		},
		"eq": comparing("=="), "equalto": comparing("=="), "==": comparing("=="), "ne": comparing("!="), "!=": comparing("!="),
		"lt": comparing("<"), "lessthan": comparing("<"), "<": comparing("<"), "le": comparing("<="), "<=": comparing("<="),
		"gt": comparing(">"), "greaterthan": comparing(">"), ">": comparing(">"), "ge": comparing(">="), ">=": comparing(">="),
		"in": comparing("in"), "escaped": ofType(func(any) bool { return false }),
		"even":  func(x *jinjaRun, v any, _ jinjaArgs) bool { return parity(v) == 0 },
		"odd":   func(x *jinjaRun, v any, _ jinjaArgs) bool { return parity(v) == 1 },
		"false": ofType(func(v any) bool { return v == false }), "true": ofType(func(v any) bool { return v == true }),
		"none": ofType(func(v any) bool { return v == nil }), "float": ofType(isType[float64]), "integer": ofType(isInt),
		"number":   ofType(func(v any) bool { return isInt(v) || isType[float64](v) || isType[bool](v) }),
		"iterable": ofType(func(v any) bool { return isSequence(v) || isUndefined(v) }), "mapping": ofType(isMapping), "sequence": ofType(isSequence), "string": ofType(isText),
		"filter": func(x *jinjaRun, v any, _ jinjaArgs) bool { return jinjaFilters[x.str(v)] != nil },
		"test":   func(x *jinjaRun, v any, _ jinjaArgs) bool { return jinjaTests[x.str(v)] != nil },
		"lower": func(x *jinjaRun, v any, _ jinjaArgs) bool {
			s := x.str(v)
			x.read(3 * len(s)) // changing its case is slower than reading
			return s != strings.ToUpper(s) && s == strings.ToLower(s)
		},
		"upper": func(x *jinjaRun, v any, _ jinjaArgs) bool {
			s := x.str(v)
			x.read(3 * len(s)) // changing its case is slower than reading
			return s != strings.ToLower(s) && s == strings.ToUpper(s)
		},
		"sameas": func(x *jinjaRun, v any, a jinjaArgs) bool {
			other := a.must(0, "other")
			return jinjaType(v) == jinjaType(other) && x.equal(v, other)
		},
	}
}

// parity is 0 for an even number, 1 for an odd one, -1 for a fraction.
func parity(v any) int {
	n, ok := jinjaNumber(v)
	if !ok {
		jinjaFail("asks whether %s is even or odd", jinjaType(v))
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
