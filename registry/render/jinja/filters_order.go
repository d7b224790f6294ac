package jinja

import "strings"

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
			k = nil // an undefined value cannot be a key
		}
		if _, ok := seen.get(x, k); !ok {
			x.put(seen, k, true)
			out.items = append(out.items, item)
		}
	}

	return out
}
