package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

// filter makes a value of another.
type filter func(x *run, v any, a arguments) any

type filterExpr struct {
	of     expression
	name   string
	filter filter
	args   *argumentExprs
}

func (e *filterExpr) eval(x *run) any { return e.apply(x, e.of.eval(x)) }

func (e *filterExpr) apply(x *run, v any) any {
	x.step()
	return e.filter(x, v, e.args.eval(x, "the filter "+e.name))
}

// textFilter is a filter of texts, which takes anything as a text.
func textFilter(f func(x *run, s string, a arguments) any) filter {
	return func(x *run, v any, a arguments) any {
		s := x.str(v)
		x.pay(2 * len(s))
		return f(x, s, a)
	}
}

// filters are the filters that there are. It is filled by init, for map calls filters by name.
var filters map[string]filter

func init() {
	filters = map[string]filter{
		"abs": filterAbs, "batch": filterBatch, "default": filterDefault, "d": filterDefault, "dictsort": filterDictsort, "first": filterFirst, "float": filterFloat,
		"format": formatPercent, "groupby": filterGroupby, "int": filterInt, "items": filterItems, "last": filterLast, "length": filterLength, "count": filterLength, "list": filterList,
		"map": filterMap, "max": filterMax, "min": filterMin, "reverse": filterReverse, "round": filterRound, "slice": filterSlice, "sort": filterSort, "sum": filterSum, "unique": filterUnique,
		"select": selectFilter(true, false), "reject": selectFilter(false, false), "selectattr": selectFilter(true, true), "rejectattr": selectFilter(false, true),
		"string": func(x *run, v any, _ arguments) any { return x.str(v) },
		"safe":   func(x *run, v any, _ arguments) any { return x.str(v) },
		"join": func(x *run, v any, a arguments) any {
			items := x.list(v)
			if attribute, ok := a.get(1, "attribute"); ok && attribute != nil {
				items = x.attributes(items, attribute, nil)
			}
			return x.joined(items, a.text(0, "d", ""))
		},
		"tojson": func(x *run, v any, a arguments) any { return x.tojson(v, a.number(0, "indent", 0)) },

		"capitalize": textFilter(func(_ *run, s string, _ arguments) any { return capitalized(s) }),
		"center":     textFilter(filterCenter),
		"e":          textFilter(filterEscape), "escape": textFilter(filterEscape), "forceescape": textFilter(filterEscape),
		"indent": textFilter(filterIndent),
		"lower":  textFilter(func(_ *run, s string, _ arguments) any { return strings.ToLower(s) }),
		"replace": textFilter(func(x *run, s string, a arguments) any {
			return x.replace(s, x.str(a.must(0, "old")), x.str(a.must(1, "new")), a.number(2, "count", -1))
		}),
		"striptags": textFilter(func(_ *run, s string, _ arguments) any { return withoutTags(s) }),
		"title":     textFilter(func(_ *run, s string, _ arguments) any { return titleCase(s) }),
		"trim": textFilter(func(_ *run, s string, a arguments) any {
			return stripped(s, "strip", a)
		}),
		"truncate": textFilter(func(x *run, s string, a arguments) any {
			return x.truncated(s, a.number(0, "length", 255), a.truth(1, "killwords", false), a.text(2, "end", "..."), a.number(3, "leeway", 5))
		}),
		"upper": textFilter(func(_ *run, s string, _ arguments) any { return upper(s) }),
		"urlencode": func(x *run, v any, a arguments) any {
			return filterURLEncode(x, v)
		},
		"wordcount": textFilter(func(_ *run, s string, _ arguments) any {
			return int64(len(strings.FieldsFunc(s, func(r rune) bool {
				return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
			})))
		}),
		"wordwrap": textFilter(func(x *run, s string, a arguments) any {
			return x.wrapped(s, a.number(0, "width", 79), a.truth(1, "break_long_words", true), a.text(2, "wrapstring", "\n"))
		}),
	}
}

func filterAbs(x *run, v any, _ arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("takes abs of %s", typeName(v))
	}
	if i, ok := n.(int64); ok {
		if i < 0 {
			return x.subtract(0, i)
		}
		return i
	}
	return math.Abs(n.(float64))
}

// filterBatch cuts a list into lists of n, filterSlice into n lists.
func filterBatch(x *run, v any, a arguments) any {
	items, n := x.list(v), a.number(0, "linecount", 0)
	if n < 1 {
		fail("calls batch with %d", n)
	}
	fill, filled := a.get(1, "fill_with")
	out := &listValue{}
	for len(items) > 0 {
		k := min(n, len(items))
		x.pay(48 + 16*k)
		batch := append([]any(nil), items[:k]...)
		items = items[k:]
		if filled && fill != nil {
			x.payTimes(16, int64(n-k))
			for len(batch) < n {
				batch = append(batch, fill)
			}
		}
		out.items = append(out.items, &listValue{items: batch})
	}
	return out
}

func filterSlice(x *run, v any, a arguments) any {
	items, n := x.list(v), a.number(0, "slices", 0)
	if n < 1 {
		fail("calls slice with %d", n)
	}
	fill, filled := a.get(1, "fill_with")
	x.payTimes(64, int64(n))
	x.pay(16 * len(items))
	out := &listValue{}
	each, more := len(items)/n, len(items)%n
	for i := range n {
		k := each
		if i < more {
			k++
		}
		part := append([]any(nil), items[:k]...)
		items = items[k:]
		if filled && fill != nil && i >= more && more > 0 {
			part = append(part, fill)
		}
		out.items = append(out.items, &listValue{items: part})
	}
	return out
}

func filterDefault(x *run, v any, a arguments) any {
	if _, undefined := v.(*undefined); undefined || a.truth(1, "boolean", false) && !x.truth(v) {
		other, ok := a.get(0, "default_value")
		if !ok {
			return ""
		}
		return other
	}
	return v
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
	return &listValue{items: x.sorted(x.pairs(d), key, !a.truth(0, "case_sensitive", false), a.truth(2, "reverse", false))}
}

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

func filterFloat(x *run, v any, a arguments) any {
	if n, ok := toNumber(v); ok {
		return toFloat(n)
	}
	if s, ok := v.(string); ok {
		x.read(len(s))
		if f, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(s), "_", ""), 64); err == nil && !strings.ContainsAny(s, "xXpP") {
			return f
		}
	}
	if other, ok := a.get(0, "default"); ok {
		return other
	}
	return 0.0
}

func filterInt(x *run, v any, a arguments) any {
	switch v := v.(type) {
	case int64, bigInteger:
		return v
	case bool:
		n, _ := toNumber(v)
		return n
	case float64:
		if math.Abs(v) < 1<<63 {
			return int64(v)
		}
	case string:
		x.read(len(v))
		s := strings.ReplaceAll(strings.TrimSpace(v), "_", "")
		base := a.number(1, "base", 10)
		if base == 16 || base == 8 || base == 2 {
			s = strings.TrimPrefix(strings.ToLower(s), map[int]string{16: "0x", 8: "0o", 2: "0b"}[base])
		}
		if base >= 2 && base <= 36 {
			if n, err := strconv.ParseInt(s, base, 64); err == nil {
				return n
			}
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<63 && !strings.ContainsAny(s, "xXpP") {
			return int64(f)
		}
	}
	if other, ok := a.get(0, "default"); ok {
		return other
	}
	return int64(0)
}

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

func filterLength(x *run, v any, _ arguments) any {
	switch v := v.(type) {
	case string:
		x.read(len(v))
		return int64(utf8.RuneCountInString(v))
	case *listValue:
		return int64(len(v.items))
	case *dictValue:
		return int64(len(v.keys))
	case *undefined:
		x.str(v)
		return int64(0)
	}
	fail("takes the length of %s", typeName(v))
	return nil
}

func filterList(x *run, v any, _ arguments) any { return &listValue{items: x.list(v)} }

func filterReverse(x *run, v any, _ arguments) any {
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

func filterRound(x *run, v any, a arguments) any {
	n, ok := toNumber(v)
	if !ok {
		fail("rounds %s", typeName(v))
	}
	precision := a.number(0, "precision", 0)
	if precision > 300 || precision < -300 {
		fail("rounds to %d digits", precision)
	}
	f, scale := toFloat(n), math.Pow(10, float64(precision))
	switch method := a.text(1, "method", "common"); method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		fail("rounds by %q; it may be common, ceil or floor", language.Shorten(method))
	}
	if _, isInt := n.(int64); isInt && precision >= 0 {
		return n
	}
	if precision < 0 {
		return math.RoundToEven(f*scale) / scale
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
	return rounded
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
		total = (&binaryExpr{op: "+", left: constant{total}, right: constant{item}}).eval(x)
	}
	return total
}

// attributes are the members of each item that a name leads to, as a.b or 0.a; other where there is none.
func (x *run) attributes(items []any, attribute, other any) []any {
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = x.attribute(item, attribute, other)
	}
	return out
}

func (x *run) attribute(item, attribute, other any) any {
	path := []any{attribute}
	if s, ok := attribute.(string); ok {
		x.read(len(s))
		path = nil
		for _, step := range strings.Split(s, ".") {
			x.pay(32)
			if n, err := strconv.ParseInt(step, 10, 32); err == nil {
				path = append(path, n)
			} else {
				path = append(path, step)
			}
		}
	}
	for _, step := range path {
		x.step()
		v, ok := x.item(item, step)
		if !ok {
			if other != nil {
				return other
			}
			return &undefined{}
		}
		item = v
	}
	return item
}

// keyOf is the key function of an attribute, or of several with commas between them.
func (x *run) keyOf(attribute any, caseless bool) func(any) any {
	if attribute == nil {
		return func(item any) any { return x.folded(item, caseless) }
	}
	s, ok := attribute.(string)
	if !ok || !strings.Contains(s, ",") {
		return func(item any) any { return x.folded(x.attribute(item, attribute, nil), caseless) }
	}
	names := strings.Split(s, ",")
	return func(item any) any {
		l := &listValue{}
		for _, name := range names {
			l.items = append(l.items, x.folded(x.attribute(item, strings.TrimSpace(name), nil), caseless))
		}
		return l
	}
}

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
	return &listValue{items: x.sorted(x.list(v), key, false, a.truth(0, "reverse", false))}
}

func extreme(x *run, v any, a arguments, sign int) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))
	items := x.list(v)
	if len(items) == 0 {
		return &undefined{}
	}
	best, bestKey := items[0], key(items[0])
	for _, item := range items[1:] {
		if k := key(item); x.order(k, bestKey)*sign > 0 {
			best, bestKey = item, k
		}
	}
	return best
}

func filterMax(x *run, v any, a arguments) any { return extreme(x, v, a, 1) }
func filterMin(x *run, v any, a arguments) any { return extreme(x, v, a, -1) }

func filterUnique(x *run, v any, a arguments) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))
	seen := x.dict()
	out := &listValue{}
	for _, item := range x.list(v) {
		k := key(item)
		if _, ok := k.(*undefined); ok {
			k = nil
		}
		if _, ok := seen.get(x, k); !ok {
			x.put(seen, k, true)
			out.items = append(out.items, item)
		}
	}
	return out
}

// filterGroupby gives pairs of a value and of the items that have it as their attribute.
func filterGroupby(x *run, v any, a arguments) any {
	attribute, other := a.must(0, "attribute"), any(nil)
	if d, ok := a.get(1, "default"); ok {
		other = d
	}
	caseless := !a.truth(2, "case_sensitive", false)
	value := func(item any) any { return x.attribute(item, attribute, other) }
	sorted := x.sorted(x.list(v), func(item any) any { return x.folded(value(item), caseless) }, false, false)
	out := &listValue{}
	var group *listValue
	var last any
	for _, item := range sorted {
		x.pay(16)
		k := x.folded(value(item), caseless)
		if group == nil || !x.equal(k, last) {
			x.pay(200)
			group, last = &listValue{}, k
			out.items = append(out.items, &listValue{items: []any{value(item), group}, tuple: true, names: []string{"grouper", "list"}})
		}
		group.items = append(group.items, item)
	}
	return out
}
