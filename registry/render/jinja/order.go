package jinja

import (
	"cmp"
	"sort"
	"strings"
)

func (x *run) equal(a, b any) bool {
	x.step()
	// 1, 1.0 and true are equal, as in Python.
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if okA && okB {
		return equalNumbers(m, n)
	}

	switch a := a.(type) {
	case *listValue:
		b, ok := b.(*listValue)
		return ok && x.equalLists(a, b)
	case *dictValue:
		b, ok := b.(*dictValue)
		return ok && x.equalDicts(a, b)
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

func (x *run) equalLists(a, b *listValue) bool {
	if len(a.items) != len(b.items) || a.tuple != b.tuple {
		return false
	}

	same := true
	x.deeper(func() {
		for i := range a.items {
			same = x.equal(a.items[i], b.items[i])
			if !same {
				break
			}
		}
	})

	return same
}

func (x *run) equalDicts(a, b *dictValue) bool {
	if len(a.keys) != len(b.keys) {
		return false
	}

	same := true
	x.deeper(func() {
		for i, key := range a.keys {
			other, ok := b.get(x, key)
			same = ok && x.equal(a.values[i], other)
			if !same {
				break
			}
		}
	})

	return same
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

// equalNumbers compares what toNumber returned. Two integers are compared exactly.
func equalNumbers(a, b any) bool {
	i, isIntA := a.(int64)
	j, isIntB := b.(int64)
	if isIntA && isIntB {
		return i == j
	}

	return toFloat(a) == toFloat(b)
}

// compareNumbers orders what toNumber returned. NaN is neither less nor greater than any
// number.
func compareNumbers(a, b any) int {
	i, isIntA := a.(int64)
	j, isIntB := b.(int64)
	if isIntA && isIntB {
		return cmp.Compare(i, j)
	}

	f, g := toFloat(a), toFloat(b)
	switch {
	case f < g:
		return -1
	case f > g:
		return 1
	}

	return 0
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
		for _, item := range hay.items {
			if x.equal(item, needle) {
				return true
			}
		}
		return false
	case *undefined:
		return false
	}

	fail("looks for something in %s", typeName(hay))
	return false
}

// sorted returns a sorted copy of a list. With caseless, strings are compared without
// regard to case.
func (x *run) sorted(items []any, key func(any) any, caseless, reverse bool) []any {
	// For keys, items and the copy.
	x.pay(64 * len(items))
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, item := range items {
		list[i] = keyed{x.folded(key(item), caseless), item}
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

// keyOf returns the function that finds what items are compared by: an attribute, or the
// item itself if attribute is nil.
func (x *run) keyOf(attribute any, caseless bool) func(any) any {
	if s, ok := attribute.(string); ok && strings.Contains(s, ",") {
		fail("compares by several attributes, which is not supported")
	}

	return func(item any) any {
		if attribute != nil {
			item = x.attribute(item, attribute)
		}
		return x.folded(item, caseless)
	}
}

// folded returns a string in lower case if caseless is set.
func (x *run) folded(v any, caseless bool) any {
	if s, ok := v.(string); ok && caseless {
		x.pay(len(s))
		return strings.ToLower(s)
	}

	return v
}

func filterSort(x *run, v any, a arguments) any {
	attribute, _ := a.get(2, "attribute")
	key := x.keyOf(attribute, !a.truth(1, "case_sensitive", false))
	reverse := a.truth(0, "reverse", false)
	return &listValue{items: x.sorted(x.list(v), key, false, reverse)}
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
	key := func(pair any) any { return pair.(*listValue).items[by] }
	caseless := !a.truth(0, "case_sensitive", false)
	reverse := a.truth(2, "reverse", false)

	return &listValue{items: x.sorted(x.pairs(d), key, caseless, reverse)}
}

func filterMax(x *run, v any, a arguments) any { return extreme(x, v, a, 1) }

func filterMin(x *run, v any, a arguments) any { return extreme(x, v, a, -1) }

func extreme(x *run, v any, a arguments, sign int) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))
	items := x.list(v)
	if len(items) == 0 {
		return &undefined{}
	}

	// The first of several equal ones is returned, as in Python.
	best, bestKey := items[0], key(items[0])
	for _, item := range items[1:] {
		if k := key(item); x.order(k, bestKey)*sign > 0 {
			best, bestKey = item, k
		}
	}

	return best
}

func filterUnique(x *run, v any, a arguments) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))

	seen := x.dict()
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
