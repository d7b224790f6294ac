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
