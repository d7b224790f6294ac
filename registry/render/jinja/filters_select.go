package jinja

import "promptspool/registry/render/language"

func filterMap(x *run, v any, a arguments) any {
	items := x.list(v)
	if attribute, ok := a.get(len(a.list), "attribute"); ok {
		absent, _ := a.get(len(a.list), "default")
		return &listValue{items: x.attributes(items, attribute, absent)}
	}

	name := x.str(a.must(0, "filter"))
	filter, ok := filters[name]
	if !ok {
		fail("maps with the filter %s, which is not supported", language.Shorten(name))
	}

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
				tested = x.attribute(item, attribute, nil)
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
