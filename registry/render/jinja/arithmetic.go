package jinja

import (
	"math"
	"math/big"
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
		return x.integers("-", 0, i)
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

// integers calculates as Python does: // and % round down.
func (x *run) integers(op string, i, j int64) any {
	a, b, result := big.NewInt(i), big.NewInt(j), new(big.Int)
	switch op {
	case "+":
		result.Add(a, b)
	case "-":
		result.Sub(a, b)
	case "*":
		result.Mul(a, b)
	default:
		if j == 0 {
			fail("divides by zero")
		}
		// The rest of this division is never negative. Python's has the sign of the divisor.
		rest := new(big.Int)
		result.DivMod(a, b, rest)
		if j < 0 && rest.Sign() > 0 {
			result.Sub(result, big.NewInt(1))
			rest.Add(rest, b)
		}
		if op == "%" {
			result = rest
		}
	}
	if !result.IsInt64() {
		fail("makes an integer beyond 64 bits")
	}

	return result.Int64()
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
