package jinja

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

// compareExpr is a chain of comparisons: a < b < c means a < b and b < c.
type compareExpr struct {
	first  expression
	ops    []string
	others []expression
}

func (e *compareExpr) eval(x *run) any {
	left := e.first.eval(x)
	for i, op := range e.ops {
		x.step()
		right := e.others[i].eval(x)
		if !x.compare(op, left, right) {
			return false
		}
		left = right
	}

	return true
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
type itemExpr struct {
	operand, key expression
	member       bool // written as operand.key
}

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
		// Only groupby makes lists whose elements have names: grouper and list.
		for i, name := range v.names {
			if name == key {
				return v.items[i], true
			}
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

// sliceExpr is operand[from:to:step].
type sliceExpr struct {
	operand expression
	bounds  [3]expression
}

func (e *sliceExpr) eval(x *run) any {
	x.step()
	switch v := e.operand.eval(x).(type) {
	case string:
		// Python counts characters, not bytes.
		runes := x.runes(v)
		places := e.places(x, len(runes))
		x.pay(16 * len(places))

		return string(picked(runes, places))

	case *listValue:
		places := e.places(x, len(v.items))
		x.pay(16 * len(places))

		return &listValue{items: picked(v.items, places), tuple: v.tuple}

	case *undefined:
		return v

	default:
		fail("takes a slice of %s", typeName(v))
	}

	return nil
}

func picked[T any](items []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = items[at]
	}

	return out
}

// places returns the indexes that the slice takes from a sequence of n elements.
func (e *sliceExpr) places(x *run, n int) []int {
	values, given := e.evalBounds(x)
	step := int64(1)
	if given[2] {
		step = values[2]
	}
	if step == 0 {
		fail("takes a slice with the step 0")
	}

	// A slice that goes backwards may end before the first element, at -1.
	low, high := int64(0), int64(n)
	if step < 0 {
		low, high = -1, int64(n)-1
	}
	clip := func(i int, absent int64) int64 {
		b := values[i]
		if !given[i] {
			return absent
		}
		if b < 0 {
			b += int64(n)
		}
		return min(max(b, low), high)
	}
	from, to := clip(0, low), clip(1, high)
	if step < 0 {
		from, to = clip(0, high), clip(1, low)
	}

	var places []int
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		x.step()
		places = append(places, int(i))
		if step > int64(n) || step < -int64(n) {
			break // there is no other, and i could overflow
		}
	}

	return places
}

func (e *sliceExpr) evalBounds(x *run) (values [3]int64, given [3]bool) {
	for i, bound := range e.bounds {
		if bound == nil {
			continue
		}
		switch v := bound.eval(x).(type) {
		case nil:
		case int64:
			values[i], given[i] = v, true
		default:
			fail("takes a slice at %s", typeName(v))
		}
	}

	return values, given
}
