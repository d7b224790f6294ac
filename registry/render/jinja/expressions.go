package jinja

import (
	"math"
	"strings"
)

// expression is an expression. What eval returns is one of the values in jinjavalue.go.
type expression interface{ eval(x *run) any }

type constant struct{ value any }

func (e constant) eval(*run) any { return e.value }

// variable is a variable.
type variable string

func (e variable) eval(x *run) any { return x.lookup(string(e)) }

// functionName is a function that is about to be called.
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

// condExpr is then if cond else otherwise.
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

type notExpr struct{ of expression }

func (e *notExpr) eval(x *run) any { return !x.truth(e.of.eval(x)) }

// compareExpr is a chain: a < b < c means a < b and b < c.
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

type signExpr struct {
	minus bool
	of    expression
}

func (e *signExpr) eval(x *run) any {
	x.step()
	v := e.of.eval(x)
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
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if !okA || !okB {
		fail("has %s %s %s, which cannot be calculated", typeName(a), e.op, typeName(b))
	}
	i, okA := m.(int64)
	j, okB := n.(int64)
	if okA && okB && e.op != "/" {
		return x.integers(e.op, i, j)
	}
	return x.floats(e.op, toFloat(m), toFloat(n))
}

// join makes one text of two.
func (x *run) join(a, b string) string {
	x.pay(len(a) + len(b))
	return a + b
}

// sequences is + of texts and lists, * of one and a number, and % of a text.
func (x *run) sequences(op string, a, b any) (any, bool) {
	switch op {
	case "+":
		switch a := a.(type) {
		case string:
			if b, ok := b.(string); ok {
				return x.join(a, b), true
			}
		case *listValue:
			if b, ok := b.(*listValue); ok && a.tuple == b.tuple {
				x.pay(24 + 16*(len(a.items)+len(b.items)))
				return &listValue{items: append(a.items[:len(a.items):len(a.items)], b.items...), tuple: a.tuple}, true
			}
		}
	case "%":
		if s, ok := a.(string); ok {
			args := arguments{x: x, what: "%", list: []any{b}}
			switch b := b.(type) {
			case *listValue:
				if b.tuple {
					args.list = b.items
				}
			case *dictValue:
				args.list = nil
				for i, key := range b.keys {
					args.names, args.named = append(args.names, x.str(key)), append(args.named, b.values[i])
				}
			}
			return formatPercent(x, s, args), true
		}
	case "*":
		if n, ok := a.(int64); ok {
			a, b = b, n
		}
		n, ok := b.(int64)
		if !ok {
			return nil, false
		}
		n = max(n, 0)
		switch a := a.(type) {
		case string:
			x.payTimes(len(a), n)
			return strings.Repeat(a, int(n)), true
		case *listValue:
			x.payTimes(16*len(a.items), n)
			l := &listValue{tuple: a.tuple}
			for range n {
				x.step()
				l.items = append(l.items, a.items...)
			}
			return l, true
		}
	}
	return nil, false
}

func (x *run) payTimes(bytes int, n int64) {
	if bytes > 0 && n > valueBytesMax {
		n = valueBytesMax + 1
	}
	if bytes == 0 {
		return
	}
	x.pay(bytes * int(n))
}

const tooLarge = "makes an integer beyond 64 bits"

func (x *run) subtract(i, j int64) int64 {
	d := i - j
	if (i >= 0) != (j >= 0) && (d >= 0) != (i >= 0) {
		fail(tooLarge)
	}
	return d
}

func (x *run) multiply(i, j int64) int64 {
	if i == 0 || j == 0 {
		return 0
	}
	p := i * j
	if p/j != i || i == math.MinInt64 && j == -1 || j == math.MinInt64 && i == -1 {
		fail(tooLarge)
	}
	return p
}

// integers calculates as Python does: // and % round down, and ** of a negative exponent is a fraction.
func (x *run) integers(op string, i, j int64) any {
	switch op {
	case "+":
		s := i + j
		if (i >= 0) == (j >= 0) && (s >= 0) != (i >= 0) {
			fail(tooLarge)
		}
		return s
	case "-":
		return x.subtract(i, j)
	case "*":
		return x.multiply(i, j)
	case "**":
		if j < 0 {
			return x.floats(op, float64(i), float64(j))
		}
		power := int64(1)
		for range j {
			x.step()
			power = x.multiply(power, i)
		}
		return power
	}
	if j == 0 {
		fail("divides by zero")
	}
	if j == -1 { // the smallest integer has no positive one
		if op == "%" {
			return int64(0)
		}
		return x.subtract(0, i)
	}
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
	case "**":
		return math.Pow(a, b)
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
	rest := math.Mod(a, b)
	if rest != 0 && (rest < 0) != (b < 0) {
		rest += b
	}
	return rest
}

// itemExpr is of.key or of[key].
type itemExpr struct {
	of, key expression
	member  bool
}

func (e *itemExpr) eval(x *run) any {
	x.step()
	of, key := e.of.eval(x), e.key.eval(x)
	v, ok := x.item(of, key)
	if ok {
		return v
	}
	name := ""
	if u, ok := e.of.(variable); ok {
		name = string(u)
	}
	if u, ok := of.(*undefined); ok {
		return u
	}
	if k, ok := key.(string); ok && name != "" {
		name += "." + k
	}
	return &undefined{name}
}

// item is an element or a member.
func (x *run) item(of, key any) (any, bool) {
	switch of := of.(type) {
	case *dictValue:
		return of.get(x, key)
	case *namespace:
		return of.get(x, key)
	case *loopState:
		name, _ := key.(string)
		return of.member(name)
	case *listValue:
		if i, ok := resolveIndex(key, len(of.items)); ok {
			return of.items[i], true
		}
		for i, name := range of.names {
			if name == key {
				return of.items[i], true
			}
		}
	case string:
		runes := x.runes(of)
		if i, ok := resolveIndex(key, len(runes)); ok {
			return string(runes[i]), true
		}
	}
	return nil, false
}

// resolveIndex is where an index leads; negative ones count from the end.
func resolveIndex(key any, length int) (int, bool) {
	i, ok := key.(int64)
	if i < 0 {
		i += int64(length)
	}
	return int(i), ok && i >= 0 && i < int64(length)
}

// sliceExpr is of[from:to:step].
type sliceExpr struct {
	of     expression
	bounds [3]expression
}

func (e *sliceExpr) eval(x *run) any {
	x.step()
	of := e.of.eval(x)
	var runes []rune
	var items []any
	n := 0
	s, isText := of.(string)
	l, isList := of.(*listValue)
	switch {
	case isText:
		runes = x.runes(s)
		n = len(runes)
	case isList:
		items, n = l.items, len(l.items)
	default:
		if u, ok := of.(*undefined); ok {
			return u
		}
		fail("takes a slice of %s", typeName(of))
	}
	places := e.places(x, n)
	x.pay(16 * len(places))
	if isText {
		out := make([]rune, len(places))
		for i, at := range places {
			out[i] = runes[at]
		}
		return string(out)
	}
	out := make([]any, len(places))
	for i, at := range places {
		out[i] = items[at]
	}
	return &listValue{items: out, tuple: l.tuple}
}

// places are the indexes that a slice takes from a sequence of n.
func (e *sliceExpr) places(x *run, n int) []int {
	var values [3]int64
	var given [3]bool
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
	step := int64(1)
	if given[2] {
		step = values[2]
	}
	if step == 0 {
		fail("takes a slice with the step 0")
	}
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
			break
		}
	}
	return places
}
