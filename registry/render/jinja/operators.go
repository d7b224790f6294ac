package jinja

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"sort"
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

func (x *run) equal(a, b any) bool {
	x.step()
	// 1, 1.0 and true are equal, as in Python.
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if okA && okB {
		return compareNumbers(m, n) == 0
	}

	switch a := a.(type) {
	case *listValue:
		b, ok := b.(*listValue)
		isAlike := ok && a.tuple == b.tuple && len(a.items) == len(b.items)
		return isAlike && x.all(len(a.items), func(i int) bool { return x.equal(a.items[i], b.items[i]) })
	case *dictValue:
		b, ok := b.(*dictValue)
		return ok && len(a.keys) == len(b.keys) && x.all(len(a.keys), func(i int) bool {
			other, exists := b.get(x, a.keys[i])
			return exists && x.equal(a.values[i], other)
		})
	case *undefined:
		return isUndefined(b)
	case string:
		b, ok := b.(string)
		if !ok {
			return false
		}
		// Comparing long texts takes time, which the template pays for.
		x.read(min(len(a), len(b)))
		return a == b
	}

	// The rest are none, large integers and, by identity, namespaces and loops.
	return a == b
}

// all reports whether something holds for each of n elements of a value.
func (x *run) all(n int, holds func(i int) bool) (all bool) {
	x.deeper(func() {
		all = true
		for i := 0; i < n && all; i++ {
			all = holds(i)
		}
	})

	return all
}

// order compares two numbers or two strings: below 0, 0 or above.
func (x *run) order(a, b any) int {
	x.step()
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if okA && okB {
		return compareNumbers(m, n)
	}

	s, isTextA := a.(string)
	t, isTextB := b.(string)
	if isTextA && isTextB {
		x.read(min(len(s), len(t)))
		return strings.Compare(s, t)
	}

	fail("compares %s with %s", typeName(a), typeName(b))
	return 0
}

// compareNumbers orders what toNumber returned. Two integers are compared exactly.
func compareNumbers(a, b any) int {
	i, isIntA := a.(int64)
	j, isIntB := b.(int64)
	if isIntA && isIntB {
		return cmp.Compare(i, j)
	}

	return cmp.Compare(toFloat(a), toFloat(b))
}

// contains reports whether needle is in hay.
func (x *run) contains(hay, needle any) bool {
	x.step()
	switch hay := hay.(type) {
	case string:
		s, ok := needle.(string)
		if !ok {
			if isUndefined(needle) {
				return false
			}
			fail("looks for %s in a text", typeName(needle))
		}
		// Searching is slower than reading.
		x.read(4 * len(hay))
		return strings.Contains(hay, s)
	case *dictValue:
		_, ok := hay.get(x, needle)
		return ok
	case *listValue:
		return slices.ContainsFunc(hay.items, func(item any) bool { return x.equal(item, needle) })
	case *undefined:
		return false
	}

	fail("looks for something in %s", typeName(hay))
	return false
}

// sorted returns a sorted copy of a list.
func (x *run) sorted(items []any, key func(any) any, reverse bool) []any {
	// For keys, items and the copy.
	x.pay(64 * len(items))
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, item := range items {
		list[i] = keyed{key(item), item}
	}

	// Stable in reverse as well, as Python's sort is.
	sort.SliceStable(list, func(i, j int) bool {
		if reverse {
			i, j = j, i
		}
		return x.order(list[i].key, list[j].key) < 0
	})

	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i].item
	}

	return out
}

// key returns the function that finds what items are compared by: an attribute, or the item
// itself without one, and texts regardless of case unless case_sensitive is given. Both
// arguments have a position.
func (a *arguments) key(caseAt, attributeAt int) func(any) any {
	attribute, _ := a.get(attributeAt, "attribute")
	caseless := !a.truth(caseAt, "case_sensitive", false)
	// The parser finds a name that is written as a text.
	if s, ok := attribute.(string); ok && strings.Contains(s, ",") {
		fail("compares by several attributes, which is not supported")
	}

	return func(item any) any {
		if attribute != nil {
			item = a.x.attribute(item, attribute)
		}
		if s, ok := item.(string); ok && caseless {
			a.x.pay(len(s))
			return strings.ToLower(s)
		}
		return item
	}
}

func filterSort(x *run, v any, a arguments) any {
	return &listValue{items: x.sorted(x.list(v), a.key(1, 2), a.truth(0, "reverse", false))}
}

func filterDictsort(x *run, v any, a arguments) any {
	d, ok := v.(*dictValue)
	if !ok {
		fail("calls dictsort for %s", typeName(v))
	}

	by := 0
	if a.text(1, "by", "key") == "value" {
		by = 1
	}
	// It has no attribute.
	key := a.key(0, math.MaxInt)
	ofPair := func(pair any) any { return key(pair.(*listValue).items[by]) }

	return &listValue{items: x.sorted(x.pairs(d), ofPair, a.truth(2, "reverse", false))}
}

// extremeFilter makes min and max. Of several equal items the first is returned, as in Python.
func extremeFilter(highest bool) filter {
	return func(x *run, v any, a arguments) any {
		items := x.sorted(x.list(v), a.key(0, 1), highest)
		if len(items) == 0 {
			return &undefined{}
		}
		return items[0]
	}
}

func filterUnique(x *run, v any, a arguments) any {
	key, seen := a.key(0, 1), x.dict()
	out := &listValue{}
	for _, item := range x.list(v) {
		k := key(item)
		if _, ok := k.(*undefined); ok {
			// An undefined value cannot be a key.
			k = nil
		}
		if _, ok := seen.get(x, k); !ok {
			x.put(seen, k, true)
			out.items = append(out.items, item)
		}
	}

	return out
}
