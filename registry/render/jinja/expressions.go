package jinja

import (
	"cmp"
	"slices"
)

// expression is an expression. eval returns one of the values in values.go.
type expression interface{ eval(x *run) any }

type constant struct{ value any }

func (e constant) eval(*run) any { return e.value }

// variable is a variable's name.
type variable string

func (e variable) eval(x *run) any { return x.lookup(string(e)) }

type listExpr struct {
	items []expression
	tuple bool
}

func (e *listExpr) eval(x *run) any {
	// The header of a list and its elements; exactness matters less than growth.
	x.pay(24 + 16*len(e.items))
	l := &listValue{items: make([]any, len(e.items)), tuple: e.tuple}
	for i, item := range e.items {
		l.items[i] = item.eval(x)
	}

	return l
}

type dictExpr struct{ keys, values []expression }

func (e *dictExpr) eval(x *run) any {
	d := x.dict()
	for i, key := range e.keys {
		k := key.eval(x)
		x.put(d, k, e.values[i].eval(x))
	}

	return d
}

// condExpr is "then if cond else otherwise".
type condExpr struct{ then, cond, otherwise expression }

func (e *condExpr) eval(x *run) any {
	x.step()
	switch {
	case x.truth(e.cond.eval(x)):
		return e.then.eval(x)
	case e.otherwise == nil:
		return &undefined{}
	}

	return e.otherwise.eval(x)
}

// boolExpr is "left and right" or "left or right".
type boolExpr struct {
	left, right expression
	or          bool
}

func (e *boolExpr) eval(x *run) any {
	x.step()
	left := e.left.eval(x)
	if x.truth(left) == e.or {
		return left
	}

	return e.right.eval(x)
}

type notExpr struct{ operand expression }

func (e *notExpr) eval(x *run) any { return !x.truth(e.operand.eval(x)) }

type compareExpr struct {
	op          string
	left, right expression
}

func (e *compareExpr) eval(x *run) any {
	left := e.left.eval(x)
	x.step()

	return x.compare(e.op, left, e.right.eval(x))
}

func (x *run) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return x.equal(a, b)
	case "!=":
		return !x.equal(a, b)
	case "in":
		return x.contains(b, a)
	case "not in":
		return !x.contains(b, a)
	case "<":
		return x.order(a, b) < 0
	case "<=":
		return x.order(a, b) <= 0
	case ">":
		return x.order(a, b) > 0
	}

	return x.order(a, b) >= 0
}

// itemExpr is operand.key or operand[key].
type itemExpr struct{ operand, key expression }

func (e *itemExpr) eval(x *run) any {
	x.step()
	operand, key := e.operand.eval(x), e.key.eval(x)
	if v, ok := x.item(operand, key); ok {
		return v
	}
	// A member of an undefined value is reported under the name of that value.
	if u, ok := operand.(*undefined); ok {
		return u
	}

	// The name under which the missing value is reported: variable, or variable.key.
	name := ""
	if v, ok := e.operand.(variable); ok {
		name = string(v)
	}
	if k, ok := key.(string); ok && name != "" {
		name += "." + k
	}

	return &undefined{name}
}

// item returns an element or a member.
func (x *run) item(operand, key any) (any, bool) {
	switch v := operand.(type) {
	case *dictValue:
		return v.get(x, key)
	case *namespace:
		return v.get(x, key)
	case *loopState:
		name, _ := key.(string)
		return v.member(name)
	case *listValue:
		if i, ok := resolveIndex(key, len(v.items)); ok {
			return v.items[i], true
		}
	case string:
		runes := x.runes(v)
		if i, ok := resolveIndex(key, len(runes)); ok {
			return string(runes[i]), true
		}
	}

	return nil, false
}

// resolveIndex returns the position that an index means. Negative indexes count from the
// end.
func resolveIndex(key any, length int) (int, bool) {
	i, ok := key.(int64)
	if i < 0 {
		i += int64(length)
	}

	return int(i), ok && i >= 0 && i < int64(length)
}

// sliceExpr is operand[from:to], or operand[::-1].
type sliceExpr struct {
	operand, from, to expression // from and to may be nil
	reverse           bool
}

func (e *sliceExpr) eval(x *run) any {
	x.step()
	switch v := e.operand.eval(x).(type) {
	case string:
		// Python counts characters, not bytes.
		runes := sliced(x, e, x.runes(v))
		x.pay(4 * len(runes))
		return string(runes)
	case *listValue:
		return &listValue{items: sliced(x, e, v.items), tuple: v.tuple}
	case *undefined:
		return v
	default:
		fail("takes a slice of %s", typeName(v))
	}

	return nil
}

func sliced[T any](x *run, e *sliceExpr, items []T) []T {
	if !e.reverse {
		from := e.place(x, e.from, 0, len(items))
		to := e.place(x, e.to, len(items), len(items))
		return items[from:max(from, to)]
	}

	// A copy: the list may be a variable, which other texts read too.
	x.pay(16 * len(items))
	items = slices.Clone(items)
	slices.Reverse(items)

	return items
}

// place returns the place in a sequence of n elements that a bound means.
func (e *sliceExpr) place(x *run, bound expression, absent, n int) int {
	if bound == nil {
		return absent
	}

	switch v := bound.eval(x).(type) {
	case nil:
		return absent
	case int64:
		if v < 0 {
			v += int64(n)
		}
		return int(min(max(v, 0), int64(n)))
	default:
		fail("takes a slice at %s", typeName(v))
	}

	return 0
}

// argumentExprs are the arguments of a call as written.
type argumentExprs struct {
	list  []expression
	names []string
	named []expression
}

// arguments are the arguments of a call as values. callee names the call in errors.
type arguments struct {
	x      *run
	callee string
	list   []any
	names  []string
	named  []any
}

func (a *argumentExprs) eval(x *run, callee string) arguments {
	args := arguments{x: x, callee: callee}
	if a == nil {
		return args
	}

	// A call in a loop evaluates its arguments each time.
	x.pay(16 * (len(a.list) + len(a.named)))
	args.names = a.names
	for _, e := range a.list {
		args.list = append(args.list, e.eval(x))
	}
	for _, e := range a.named {
		args.named = append(args.named, e.eval(x))
	}

	return args
}

// get returns the argument at a position, or else with a name.
func (a *arguments) get(i int, name string) (any, bool) {
	if i < len(a.list) {
		return a.list[i], true
	}

	// Templates may name thousands of arguments, and look each of them up.
	a.x.read(16 * len(a.names))
	if j := slices.Index(a.names, name); j >= 0 {
		return a.named[j], true
	}

	return nil, false
}

// or returns an argument, or else another value.
func (a *arguments) or(i int, name string, absent any) any {
	if v, ok := a.get(i, name); ok {
		return v
	}
	return absent
}

func (a *arguments) must(i int, name string) any {
	v, ok := a.get(i, name)
	if !ok {
		fail("calls %s without %s", a.callee, name)
	}

	return v
}

// rest returns the arguments after the first.
func (a arguments) rest() arguments {
	if len(a.list) > 0 {
		a.list = a.list[1:]
	}

	return a
}

func (a *arguments) text(i int, name, absent string) string {
	v, ok := a.get(i, name)
	if !ok || v == nil {
		return absent
	}

	return a.x.str(v)
}

func (a *arguments) number(i int, name string, absent int64) int {
	v, ok := a.get(i, name)
	if !ok || v == nil {
		return int(absent)
	}
	n, ok := toNumber(v)
	k, isInt := n.(int64)
	if !ok || !isInt {
		fail("calls %s with %s as %s", a.callee, typeName(v), name)
	}

	// Clipped, so that callers can calculate with it; a larger one costs too much anyway.
	return int(min(max(k, -valueBytesMax-1), valueBytesMax+1))
}

func (a *arguments) truth(i int, name string, absent bool) bool {
	v, ok := a.get(i, name)
	if !ok {
		return absent
	}

	return a.x.truth(v)
}

// functions are the functions that templates can call. init breaks the cycle through
// expressions.
var functions map[string]func(x *run, a arguments) any

func init() {
	functions = map[string]func(x *run, a arguments) any{
		"range":     callRange,
		"dict":      func(x *run, a arguments) any { return newDict(x, a) },
		"namespace": func(x *run, a arguments) any { return &namespace{*newDict(x, a)} },
	}
}

// newDict makes a mapping from another one and from named arguments.
func newDict(x *run, a arguments) *dictValue {
	d := x.dict()
	if len(a.list) > 0 {
		other, ok := a.list[0].(*dictValue)
		if !ok {
			fail("calls %s with %s", a.callee, typeName(a.list[0]))
		}
		for i, key := range other.keys {
			x.put(d, key, other.values[i])
		}
	}
	for i, name := range a.names {
		x.put(d, name, a.named[i])
	}

	return d
}

func callRange(x *run, a arguments) any {
	from, to, step := 0, a.number(0, "stop", 0), a.number(2, "step", 1)
	if len(a.list) > 1 {
		from, to = a.number(0, "start", 0), a.number(1, "stop", 0)
	}
	if step == 0 || len(a.list) == 0 {
		fail("calls range without a stop, or with the step 0")
	}

	// Rounded up, whichever the direction.
	n := max(0, (to-from+step-cmp.Compare(step, 0))/step)
	// The bound of Jinja's sandbox: what renders there renders here.
	if n > rangeMax {
		fail("calls range for more than %d numbers", rangeMax)
	}

	x.pay(24 * n)
	l := &listValue{items: make([]any, n)}
	for i := range l.items {
		l.items[i] = int64(from + i*step)
	}

	return l
}

type callExpr struct {
	name string
	args *argumentExprs
}

func (e *callExpr) eval(x *run) any {
	x.step()
	return functions[e.name](x, e.args.eval(x, e.name))
}
