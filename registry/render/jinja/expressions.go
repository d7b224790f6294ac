package jinja

import "slices"

// expression is an expression. eval returns one of the values in values.go.
type expression interface{ eval(x *run) any }

type constant struct{ value any }

func (e constant) eval(*run) any { return e.value }

// variable is a variable's name.
type variable string

func (e variable) eval(x *run) any { return x.lookup(string(e)) }

// functionName is the name of a function that is about to be called.
type functionName string

func (e functionName) eval(*run) any { return &undefined{string(e)} }

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
