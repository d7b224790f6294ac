package jinja

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
