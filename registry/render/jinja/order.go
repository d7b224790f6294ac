package jinja

import (
	"sort"
	"strings"
)

func (x *run) equal(a, b any) (same bool) {
	x.step()
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if okA && okB {
		if i, ok := m.(int64); ok {
			if j, ok := n.(int64); ok {
				return i == j
			}
		}
		return toFloat(m) == toFloat(n)
	}
	switch a := a.(type) {
	case *listValue:
		b, ok := b.(*listValue)
		if !ok || len(a.items) != len(b.items) || a.tuple != b.tuple {
			return false
		}
		same = true
		x.deeper(func() {
			for i := range a.items {
				if same = same && x.equal(a.items[i], b.items[i]); !same {
					break
				}
			}
		})
		return same
	case *dictValue:
		b, ok := b.(*dictValue)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		same = true
		x.deeper(func() {
			for i, key := range a.keys {
				other, ok := b.get(x, key)
				if same = same && ok && x.equal(a.values[i], other); !same {
					break
				}
			}
		})
		return same
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case string:
		if b, ok := b.(string); ok {
			x.read(min(len(a), len(b)))
			return a == b
		}
		return false
	}
	return a == b
}

// order compares two numbers, texts or lists: below 0, 0 or above.
func (x *run) order(a, b any) (order int) {
	x.step()
	m, okA := toNumber(a)
	n, okB := toNumber(b)
	if okA && okB {
		i, okI := m.(int64)
		j, okJ := n.(int64)
		if okI && okJ {
			return compareOrdered(i, j)
		}
		return compareOrdered(toFloat(m), toFloat(n))
	}
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			x.read(min(len(s), len(t)))
			return strings.Compare(s, t)
		}
	}
	if l, ok := a.(*listValue); ok {
		if k, ok := b.(*listValue); ok {
			x.deeper(func() {
				for i := 0; i < len(l.items) && i < len(k.items) && order == 0; i++ {
					if !x.equal(l.items[i], k.items[i]) {
						order = x.order(l.items[i], k.items[i])
					}
				}
			})
			if order == 0 {
				order = len(l.items) - len(k.items)
			}
			return order
		}
	}
	fail("compares %s with %s", typeName(a), typeName(b))
	return 0
}

func compareOrdered[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// contains is needle in hay.
func (x *run) contains(hay, needle any) bool {
	x.step()
	switch hay := hay.(type) {
	case string:
		s, ok := needle.(string)
		if !ok {
			if _, undefined := needle.(*undefined); undefined {
				return false
			}
			fail("looks for %s in a text", typeName(needle))
		}
		x.read(4 * len(hay)) // searching is slower than reading
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

// sorted is a copy of a list in order; with caseless, texts without regard to case.
func (x *run) sorted(items []any, key func(any) any, caseless, reverse bool) []any {
	x.pay(64 * len(items))
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, item := range items {
		k := key(item)
		if s, ok := k.(string); ok && caseless {
			x.pay(len(s))
			k = strings.ToLower(s)
		}
		list[i] = keyed{k, item}
	}
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
