package render

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jinjaFilter makes a value of another.
type jinjaFilter func(x *jinjaRun, v any, a jinjaArgs) any

type jinjaFilterCall struct {
	of     jinjaExpr
	name   string
	filter jinjaFilter
	args   *jinjaArguments
}

func (e *jinjaFilterCall) eval(x *jinjaRun) any { return e.apply(x, e.of.eval(x)) }

func (e *jinjaFilterCall) apply(x *jinjaRun, v any) any {
	x.step()
	return e.filter(x, v, e.args.eval(x, "the filter "+e.name))
}

// textFilter is a filter of texts, which takes anything as a text.
func textFilter(f func(x *jinjaRun, s string, a jinjaArgs) any) jinjaFilter {
	return func(x *jinjaRun, v any, a jinjaArgs) any {
		s := x.str(v)
		x.pay(2 * len(s))
		return f(x, s, a)
	}
}

// jinjaFilters are the filters that there are. It is filled by init, for map calls filters by name.
var jinjaFilters map[string]jinjaFilter

func init() {
	jinjaFilters = map[string]jinjaFilter{
		"abs": jinjaAbs, "batch": jinjaBatch, "default": jinjaDefault, "d": jinjaDefault, "dictsort": jinjaDictsort, "first": jinjaFirst, "float": jinjaFloat,
		"format": jinjaFormat, "groupby": jinjaGroupby, "int": jinjaToInt, "items": jinjaItems, "last": jinjaLast, "length": jinjaLength, "count": jinjaLength, "list": jinjaToList,
		"map": jinjaMap, "max": jinjaMax, "min": jinjaMin, "reverse": jinjaReverse, "round": jinjaRound, "slice": jinjaSliceFilter, "sort": jinjaSort, "sum": jinjaSum, "unique": jinjaUnique,
		"select": jinjaSelect(true, false), "reject": jinjaSelect(false, false), "selectattr": jinjaSelect(true, true), "rejectattr": jinjaSelect(false, true),
		"string": func(x *jinjaRun, v any, _ jinjaArgs) any { return x.str(v) },
		"safe":   func(x *jinjaRun, v any, _ jinjaArgs) any { return x.str(v) },
		"join": func(x *jinjaRun, v any, a jinjaArgs) any {
			items := x.list(v)
			if attribute, ok := a.get(1, "attribute"); ok && attribute != nil {
				items = x.attributes(items, attribute, nil)
			}
			return x.joined(items, a.text(0, "d", ""))
		},
		"tojson": func(x *jinjaRun, v any, a jinjaArgs) any { return x.tojson(v, a.number(0, "indent", 0)) },

		"capitalize": textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any { return capitalized(s) }),
		"center":     textFilter(jinjaCenter),
		"e":          textFilter(jinjaEscape), "escape": textFilter(jinjaEscape), "forceescape": textFilter(jinjaEscape),
		"indent": textFilter(jinjaIndent),
		"lower":  textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any { return strings.ToLower(s) }),
		"replace": textFilter(func(x *jinjaRun, s string, a jinjaArgs) any {
			return x.replace(s, x.str(a.must(0, "old")), x.str(a.must(1, "new")), a.number(2, "count", -1))
		}),
		"striptags": textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any { return withoutTags(s) }),
		"title":     textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any { return jinjaTitle(s) }),
		"trim": textFilter(func(_ *jinjaRun, s string, a jinjaArgs) any {
			return stripped(s, "strip", a)
		}),
		"truncate": textFilter(func(x *jinjaRun, s string, a jinjaArgs) any {
			return x.truncated(s, a.number(0, "length", 255), a.truth(1, "killwords", false), a.text(2, "end", "..."), a.number(3, "leeway", 5))
		}),
		"upper": textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any { return upper(s) }),
		"urlencode": func(x *jinjaRun, v any, a jinjaArgs) any {
			return jinjaURLEncode(x, v)
		},
		"wordcount": textFilter(func(_ *jinjaRun, s string, _ jinjaArgs) any {
			return int64(len(strings.FieldsFunc(s, func(r rune) bool {
				return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
			})))
		}),
		"wordwrap": textFilter(func(x *jinjaRun, s string, a jinjaArgs) any {
			return x.wrapped(s, a.number(0, "width", 79), a.truth(1, "break_long_words", true), a.text(2, "wrapstring", "\n"))
		}),
	}
}

func jinjaAbs(x *jinjaRun, v any, _ jinjaArgs) any {
	n, ok := jinjaNumber(v)
	if !ok {
		jinjaFail("takes abs of %s", jinjaType(v))
	}
	if i, ok := n.(int64); ok {
		if i < 0 {
			return x.subtract(0, i)
		}
		return i
	}
	return math.Abs(n.(float64))
}

// jinjaBatch cuts a list into lists of n, jinjaSliceFilter into n lists.
func jinjaBatch(x *jinjaRun, v any, a jinjaArgs) any {
	items, n := x.list(v), a.number(0, "linecount", 0)
	if n < 1 {
		jinjaFail("calls batch with %d", n)
	}
	fill, filled := a.get(1, "fill_with")
	out := &jinjaList{}
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
		out.items = append(out.items, &jinjaList{items: batch})
	}
	return out
}

func jinjaSliceFilter(x *jinjaRun, v any, a jinjaArgs) any {
	items, n := x.list(v), a.number(0, "slices", 0)
	if n < 1 {
		jinjaFail("calls slice with %d", n)
	}
	fill, filled := a.get(1, "fill_with")
	x.payTimes(64, int64(n))
	x.pay(16 * len(items))
	out := &jinjaList{}
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
		out.items = append(out.items, &jinjaList{items: part})
	}
	return out
}

func jinjaDefault(x *jinjaRun, v any, a jinjaArgs) any {
	if _, undefined := v.(*jinjaUndefined); undefined || a.truth(1, "boolean", false) && !x.truth(v) {
		other, ok := a.get(0, "default_value")
		if !ok {
			return ""
		}
		return other
	}
	return v
}

func jinjaDictsort(x *jinjaRun, v any, a jinjaArgs) any {
	d, ok := v.(*jinjaDict)
	if !ok {
		jinjaFail("calls dictsort for %s", jinjaType(v))
	}
	by := 0
	if a.text(1, "by", "key") == "value" {
		by = 1
	}
	key := func(pair any) any { return pair.(*jinjaList).items[by] }
	return &jinjaList{items: x.sorted(x.pairs(d), key, !a.truth(0, "case_sensitive", false), a.truth(2, "reverse", false))}
}

func jinjaFirst(x *jinjaRun, v any, _ jinjaArgs) any {
	if s, ok := v.(string); ok && s != "" {
		_, size := utf8.DecodeRuneInString(s)
		return s[:size]
	}
	if items := x.list(v); len(items) > 0 {
		return items[0]
	}
	return &jinjaUndefined{}
}

func jinjaLast(x *jinjaRun, v any, _ jinjaArgs) any {
	if s, ok := v.(string); ok && s != "" {
		_, size := utf8.DecodeLastRuneInString(s)
		return s[len(s)-size:]
	}
	if items := x.list(v); len(items) > 0 {
		return items[len(items)-1]
	}
	return &jinjaUndefined{}
}

func jinjaFloat(x *jinjaRun, v any, a jinjaArgs) any {
	if n, ok := jinjaNumber(v); ok {
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

func jinjaToInt(x *jinjaRun, v any, a jinjaArgs) any {
	switch v := v.(type) {
	case int64, jinjaBig:
		return v
	case bool:
		n, _ := jinjaNumber(v)
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

func jinjaItems(x *jinjaRun, v any, _ jinjaArgs) any {
	switch v := v.(type) {
	case *jinjaDict:
		return &jinjaList{items: x.pairs(v)}
	case *jinjaUndefined:
		return &jinjaList{}
	}
	jinjaFail("takes the items of %s", jinjaType(v))
	return nil
}

func jinjaLength(x *jinjaRun, v any, _ jinjaArgs) any {
	switch v := v.(type) {
	case string:
		x.read(len(v))
		return int64(utf8.RuneCountInString(v))
	case *jinjaList:
		return int64(len(v.items))
	case *jinjaDict:
		return int64(len(v.keys))
	case *jinjaUndefined:
		x.str(v)
		return int64(0)
	}
	jinjaFail("takes the length of %s", jinjaType(v))
	return nil
}

func jinjaToList(x *jinjaRun, v any, _ jinjaArgs) any { return &jinjaList{items: x.list(v)} }

func jinjaReverse(x *jinjaRun, v any, _ jinjaArgs) any {
	items := x.list(v)
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[len(items)-1-i] = item
	}
	if _, ok := v.(string); ok {
		return x.joined(out, "")
	}
	return &jinjaList{items: out}
}

func jinjaRound(x *jinjaRun, v any, a jinjaArgs) any {
	n, ok := jinjaNumber(v)
	if !ok {
		jinjaFail("rounds %s", jinjaType(v))
	}
	precision := a.number(0, "precision", 0)
	if precision > 300 || precision < -300 {
		jinjaFail("rounds to %d digits", precision)
	}
	f, scale := toFloat(n), math.Pow(10, float64(precision))
	switch method := a.text(1, "method", "common"); method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		jinjaFail("rounds by %q; it may be common, ceil or floor", shorten(method))
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

func jinjaSum(x *jinjaRun, v any, a jinjaArgs) any {
	items := x.list(v)
	if attribute, ok := a.get(0, "attribute"); ok && attribute != nil {
		items = x.attributes(items, attribute, nil)
	}
	var total any = int64(0)
	if start, ok := a.get(1, "start"); ok {
		total = start
	}
	for _, item := range items {
		total = (&jinjaBinary{op: "+", left: jinjaConst{total}, right: jinjaConst{item}}).eval(x)
	}
	return total
}

// attributes are the members of each item that a name leads to, as a.b or 0.a; other where there is none.
func (x *jinjaRun) attributes(items []any, attribute, other any) []any {
	x.pay(16 * len(items))
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = x.attribute(item, attribute, other)
	}
	return out
}

func (x *jinjaRun) attribute(item, attribute, other any) any {
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
			return &jinjaUndefined{}
		}
		item = v
	}
	return item
}

// keyOf is the key function of an attribute, or of several with commas between them.
func (x *jinjaRun) keyOf(attribute any, caseless bool) func(any) any {
	if attribute == nil {
		return func(item any) any { return x.folded(item, caseless) }
	}
	s, ok := attribute.(string)
	if !ok || !strings.Contains(s, ",") {
		return func(item any) any { return x.folded(x.attribute(item, attribute, nil), caseless) }
	}
	names := strings.Split(s, ",")
	return func(item any) any {
		l := &jinjaList{}
		for _, name := range names {
			l.items = append(l.items, x.folded(x.attribute(item, strings.TrimSpace(name), nil), caseless))
		}
		return l
	}
}

func (x *jinjaRun) folded(v any, caseless bool) any {
	if s, ok := v.(string); ok && caseless {
		x.pay(len(s))
		return strings.ToLower(s)
	}
	return v
}

func jinjaSort(x *jinjaRun, v any, a jinjaArgs) any {
	attribute, _ := a.get(2, "attribute")
	key := x.keyOf(attribute, !a.truth(1, "case_sensitive", false))
	return &jinjaList{items: x.sorted(x.list(v), key, false, a.truth(0, "reverse", false))}
}

func jinjaExtreme(x *jinjaRun, v any, a jinjaArgs, sign int) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))
	items := x.list(v)
	if len(items) == 0 {
		return &jinjaUndefined{}
	}
	best, bestKey := items[0], key(items[0])
	for _, item := range items[1:] {
		if k := key(item); x.order(k, bestKey)*sign > 0 {
			best, bestKey = item, k
		}
	}
	return best
}

func jinjaMax(x *jinjaRun, v any, a jinjaArgs) any { return jinjaExtreme(x, v, a, 1) }
func jinjaMin(x *jinjaRun, v any, a jinjaArgs) any { return jinjaExtreme(x, v, a, -1) }

func jinjaUnique(x *jinjaRun, v any, a jinjaArgs) any {
	attribute, _ := a.get(1, "attribute")
	key := x.keyOf(attribute, !a.truth(0, "case_sensitive", false))
	seen := x.dict()
	out := &jinjaList{}
	for _, item := range x.list(v) {
		k := key(item)
		if _, ok := k.(*jinjaUndefined); ok {
			k = nil
		}
		if _, ok := seen.get(x, k); !ok {
			x.put(seen, k, true)
			out.items = append(out.items, item)
		}
	}
	return out
}

// jinjaGroupby gives pairs of a value and of the items that have it as their attribute.
func jinjaGroupby(x *jinjaRun, v any, a jinjaArgs) any {
	attribute, other := a.must(0, "attribute"), any(nil)
	if d, ok := a.get(1, "default"); ok {
		other = d
	}
	caseless := !a.truth(2, "case_sensitive", false)
	value := func(item any) any { return x.attribute(item, attribute, other) }
	sorted := x.sorted(x.list(v), func(item any) any { return x.folded(value(item), caseless) }, false, false)
	out := &jinjaList{}
	var group *jinjaList
	var last any
	for _, item := range sorted {
		x.pay(16)
		k := x.folded(value(item), caseless)
		if group == nil || !x.equal(k, last) {
			x.pay(200)
			group, last = &jinjaList{}, k
			out.items = append(out.items, &jinjaList{items: []any{value(item), group}, tuple: true, names: []string{"grouper", "list"}})
		}
		group.items = append(group.items, item)
	}
	return out
}
