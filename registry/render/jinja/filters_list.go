package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

func filterFirst(x *run, v any, _ arguments) any {
	if s, ok := v.(string); ok && s != "" {
		_, size := utf8.DecodeRuneInString(s)
		return s[:size]
	}
	if items := x.list(v); len(items) > 0 {
		return items[0]
	}

	return &undefined{}
}

func filterLast(x *run, v any, _ arguments) any {
	if s, ok := v.(string); ok && s != "" {
		_, size := utf8.DecodeLastRuneInString(s)
		return s[len(s)-size:]
	}
	if items := x.list(v); len(items) > 0 {
		return items[len(items)-1]
	}

	return &undefined{}
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
		items = x.attributes(items, attribute, nil)
	}

	return x.joined(items, a.text(0, "d", ""))
}

func filterReverse(x *run, v any, _ arguments) any {
	// A copy: the list may be a variable, which other texts read too.
	items := x.list(v)
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[len(items)-1-i] = item
	}

	if _, ok := v.(string); ok {
		return x.joined(out, "")
	}

	return &listValue{items: out}
}

func filterSum(x *run, v any, a arguments) any {
	items := x.list(v)
	if attribute, ok := a.get(0, "attribute"); ok && attribute != nil {
		items = x.attributes(items, attribute, nil)
	}

	var total any = int64(0)
	if start, ok := a.get(1, "start"); ok {
		total = start
	}
	for _, item := range items {
		// Through the operator, so that lists and strings can be added up as in Jinja.
		total = (&binaryExpr{op: "+", left: constant{total}, right: constant{item}}).eval(x)
	}

	return total
}

// attributes returns the member of each item that a path such as a.b or 0.a leads to;
// absent where there is none.
func (x *run) attributes(items []any, attribute, absent any) []any {
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = x.attribute(item, attribute, absent)
	}

	return out
}

func (x *run) attribute(item, attribute, absent any) any {
	for _, key := range x.attributePath(attribute) {
		x.step()
		v, ok := x.item(item, key)
		if !ok {
			if absent != nil {
				return absent
			}
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
		absent, _ := a.get(len(a.list), "default")
		return &listValue{items: x.attributes(items, attribute, absent)}
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
