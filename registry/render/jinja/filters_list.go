package jinja

import (
	"strconv"
	"strings"

	"promptspool/registry/render/language"
)

// endFilter makes first and last, from the index of the element.
func endFilter(index int64) filter {
	return func(x *run, v any, _ arguments) any {
		if !isString(v) {
			v = &listValue{items: x.list(v)}
		}
		if item, ok := x.item(v, index); ok {
			return item
		}
		return &undefined{}
	}
}

func filterList(x *run, v any, _ arguments) any { return &listValue{items: x.list(v)} }

func filterItems(x *run, v any, _ arguments) any {
	switch v := v.(type) {
	case *dictValue:
		return &listValue{items: x.pairs(v)}
	case *undefined:
		return &listValue{}
	}

	fail("takes the items of %s", typeName(v))
	return nil
}

func filterJoin(x *run, v any, a arguments) any {
	items := x.list(v)
	if attribute, ok := a.get(1, "attribute"); ok && attribute != nil {
		items = x.attributes(items, attribute)
	}

	return x.joined(items, a.text(0, "d", ""))
}

func filterReverse(x *run, v any, _ arguments) any {
	items := sliced(x, &sliceExpr{reverse: true}, x.list(v))
	if _, ok := v.(string); ok {
		return x.joined(items, "")
	}

	return &listValue{items: items}
}

// attributes returns the member of each item that a path such as a.b or 0.a leads to.
func (x *run) attributes(items []any, attribute any) []any {
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = x.attribute(item, attribute)
	}

	return out
}

func (x *run) attribute(item, attribute any) any {
	for _, key := range x.attributePath(attribute) {
		x.step()
		v, ok := x.item(item, key)
		if !ok {
			return &undefined{}
		}
		item = v
	}

	return item
}

func (x *run) attributePath(attribute any) []any {
	s, ok := attribute.(string)
	if !ok {
		return []any{attribute}
	}

	x.read(len(s))
	var path []any
	for _, key := range strings.Split(s, ".") {
		x.pay(32)
		if n, err := strconv.ParseInt(key, 10, 32); err == nil {
			path = append(path, n)
		} else {
			path = append(path, key)
		}
	}

	return path
}

func filterMap(x *run, v any, a arguments) any {
	items := x.list(v)
	// Only by its name: what comes first by position is a filter.
	if attribute, ok := a.get(len(a.list), "attribute"); ok {
		return &listValue{items: x.attributes(items, attribute)}
	}

	name := x.str(a.must(0, "filter"))
	filter, ok := filters[name]
	if !ok {
		fail("maps with the filter %s, which is not supported", language.Shorten(name))
	}

	// The arguments after the name belong to the filter that is applied.
	rest := a.rest()
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		x.step()
		out[i] = filter(x, item, rest)
	}

	return &listValue{items: out}
}

// selectFilter makes select, reject, selectattr and rejectattr.
func selectFilter(keep, byAttribute bool) filter {
	return func(x *run, v any, a arguments) any {
		items := x.list(v)
		attribute := any(nil)
		if byAttribute {
			attribute = a.must(0, "attribute")
			a = a.rest()
		}
		holds := x.selection(a)

		out := &listValue{}
		for _, item := range items {
			x.step()
			tested := item
			if byAttribute {
				tested = x.attribute(item, attribute)
			}
			if holds(tested) == keep {
				x.pay(16)
				out.items = append(out.items, item)
			}
		}

		return out
	}
}

// selection returns the test that the arguments name, with its own arguments; the truth
// of the value if they name none.
func (x *run) selection(a arguments) func(v any) bool {
	if len(a.list) == 0 {
		return x.truth
	}

	name := x.str(a.list[0])
	test, ok := tests[name]
	if !ok {
		fail("selects with the test %s, which is not supported", language.Shorten(name))
	}
	rest := a.rest()

	return func(v any) bool { return test(x, v, rest) }
}
