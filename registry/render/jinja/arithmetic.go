package jinja

import (
	"math"
	"strings"
)

// signExpr is +operand or -operand.
type signExpr struct {
	minus   bool
	operand expression
}

func (e *signExpr) eval(x *run) any {
	x.step()
	v := e.operand.eval(x)
	n, ok := toNumber(v)
	switch {
	case !ok:
		fail("has a sign before %s", typeName(v))
	case !e.minus:
		return n
	}

	if i, ok := n.(int64); ok {
		return x.subtract(0, i)
	}

	return -n.(float64)
}

type binaryExpr struct {
	op          string
	left, right expression
}

func (e *binaryExpr) eval(x *run) any {
	x.step()
	a, b := e.left.eval(x), e.right.eval(x)
	if e.op == "~" {
		return x.join(x.str(a), x.str(b))
	}
	if v, ok := x.sequences(e.op, a, b); ok {
		return v
	}

	// Booleans are numbers, as in Python.
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if !okA || !okB {
		fail("has %s %s %s, which cannot be calculated", typeName(a), e.op, typeName(b))
	}
	i, isIntA := m.(int64)
	j, isIntB := n.(int64)
	if isIntA && isIntB && e.op != "/" {
		return x.integers(e.op, i, j)
	}

	return x.floats(e.op, toFloat(m), toFloat(n))
}

// join joins two strings.
func (x *run) join(a, b string) string {
	x.pay(len(a) + len(b))
	return a + b
}

// sequences calculates with strings and lists: + of two, and * of a string and a number. ok
// is false if the operation is none of these.
func (x *run) sequences(op string, a, b any) (v any, ok bool) {
	switch op {
	case "+":
		return x.concatenated(a, b)
	case "*":
		if n, ok := a.(int64); ok {
			return x.repeated(b, n)
		}
		if n, ok := b.(int64); ok {
			return x.repeated(a, n)
		}
	}

	return nil, false
}

func (x *run) concatenated(a, b any) (any, bool) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return x.join(a, b), true
		}
	case *listValue:
		if b, ok := b.(*listValue); ok && a.tuple == b.tuple {
			x.pay(24 + 16*(len(a.items)+len(b.items)))
			// The cap keeps append from writing into a's array: values never change.
			items := append(a.items[:len(a.items):len(a.items)], b.items...)
			return &listValue{items: items, tuple: a.tuple}, true
		}
	}

	return nil, false
}

func (x *run) repeated(v any, n int64) (any, bool) {
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	n = max(n, 0)
	x.payTimes(len(s), n)

	return strings.Repeat(s, int(n)), true
}

const tooLarge = "makes an integer beyond 64 bits"

func (x *run) add(i, j int64) int64 {
	sum := i + j
	if (i >= 0) == (j >= 0) && (sum >= 0) != (i >= 0) {
		fail(tooLarge)
	}

	return sum
}

func (x *run) subtract(i, j int64) int64 {
	difference := i - j
	if (i >= 0) != (j >= 0) && (difference >= 0) != (i >= 0) {
		fail(tooLarge)
	}

	return difference
}

func (x *run) multiply(i, j int64) int64 {
	if i == 0 || j == 0 {
		return 0
	}

	// The division finds every overflow but that of the smallest integer's negation.
	product := i * j
	if product/j != i || i == math.MinInt64 && j == -1 || j == math.MinInt64 && i == -1 {
		fail(tooLarge)
	}

	return product
}

// integers calculates as Python does: // and % round down.
func (x *run) integers(op string, i, j int64) any {
	switch op {
	case "+":
		return x.add(i, j)
	case "-":
		return x.subtract(i, j)
	case "*":
		return x.multiply(i, j)
	}

	if j == 0 {
		fail("divides by zero")
	}
	// Go's division would overflow for the smallest integer.
	if j == -1 {
		if op == "%" {
			return int64(0)
		}
		return x.subtract(0, i)
	}

	// Go rounds towards zero, Python downwards.
	quotient, rest := i/j, i%j
	if rest != 0 && (rest < 0) != (j < 0) {
		quotient, rest = quotient-1, rest+j
	}
	if op == "//" {
		return quotient
	}

	return rest
}

func (x *run) floats(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	}

	if b == 0 {
		fail("divides by zero")
	}
	switch op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}

	// As above: the rest has the sign of the divisor.
	rest := math.Mod(a, b)
	if rest != 0 && (rest < 0) != (b < 0) {
		rest += b
	}

	return rest
}
