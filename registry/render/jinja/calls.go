package jinja

import "slices"

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

	n := 0
	if step > 0 && to > from {
		n = (to - from + step - 1) / step
	} else if step < 0 && to < from {
		n = (from - to - step - 1) / -step
	}
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
