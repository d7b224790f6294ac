package render

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/api/wire"
)

// A value is nil (None), bool, int64, float64, jinjaBig, string, *jinjaList, *jinjaDict, *jinjaNamespace, *jinjaLoop or
// *jinjaUndefined. Values never change once they are made, but for namespaces.

// jinjaBig is an integer beyond 64 bits, as it was written.
type jinjaBig string

// jinjaUndefined is what is not there. name is what it was called, "" if it has no name.
type jinjaUndefined struct{ name string }

type jinjaList struct {
	items []any
	tuple bool
	names []string // of the elements, if they have some
}

// jinjaDict keeps its members in the order they came.
type jinjaDict struct {
	keys, values []any
	index        map[any]int
}

type jinjaNamespace struct{ jinjaDict }

func (x *jinjaRun) dict() *jinjaDict {
	x.pay(64)
	return &jinjaDict{index: make(map[any]int)}
}

// key brings a value into the form by which a dict finds it: 1, 1.0 and true are the same.
func (x *jinjaRun) key(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v)
		}
		return v
	case nil, int64, string, jinjaBig:
		return v
	case *jinjaList:
		if v.tuple {
			return x.repr(v)
		}
	}
	jinjaFail("uses %s as a key", jinjaType(v))
	return nil
}

func (x *jinjaRun) put(d *jinjaDict, key, value any) {
	k := x.key(key)
	if i, ok := d.index[k]; ok {
		d.values[i] = value
		return
	}
	x.pay(96)
	if d.index == nil {
		d.index = make(map[any]int)
	}
	d.index[k] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, value)
}

func (d *jinjaDict) get(x *jinjaRun, key any) (any, bool) {
	if l, ok := key.(*jinjaList); ok && !l.tuple {
		return nil, false
	}
	if _, ok := key.(*jinjaDict); ok {
		return nil, false
	}
	if _, ok := key.(*jinjaUndefined); ok {
		return nil, false
	}
	i, ok := d.index[x.key(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// items are the members as pairs.
func (x *jinjaRun) pairs(d *jinjaDict) []any {
	x.pay(80 * len(d.keys))
	list := make([]any, len(d.keys))
	for i := range list {
		list[i] = &jinjaList{items: []any{d.keys[i], d.values[i]}, tuple: true}
	}
	return list
}

// decode makes a value of JSON.
func (x *jinjaRun) decode(raw json.RawMessage) (v any) {
	x.step()
	switch raw[0] {
	case '"':
		x.pay(len(raw))
		return wire.Unquote(raw)
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case '[':
		l := &jinjaList{}
		x.deeper(func() {
			for _, e := range wire.Elements(raw) {
				x.pay(32)
				l.items = append(l.items, x.decode(e))
			}
		})
		return l
	case '{':
		d := x.dict()
		x.deeper(func() {
			for m := range wire.Members(raw) {
				x.pay(len(m.Name))
				x.put(d, m.Name, x.decode(m.Value))
			}
		})
		return d
	}
	number := string(raw)
	if !isInteger(number) {
		return parseFloat(number)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n
	}
	x.pay(len(number))
	return jinjaBig(number)
}

// jinjaType names a value in an error.
func jinjaType(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int64, jinjaBig:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a text"
	case *jinjaList:
		return "a list"
	case *jinjaDict, *jinjaNamespace:
		return "a mapping"
	case *jinjaUndefined:
		if v.name != "" {
			return shorten(v.name) + ", which is undefined,"
		}
		return "what is undefined"
	}
	return "the loop"
}

func (x *jinjaRun) truth(v any) bool {
	x.step()
	switch v := v.(type) {
	case nil, *jinjaUndefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *jinjaList:
		return len(v.items) > 0
	case *jinjaDict:
		return len(v.keys) > 0
	}
	return true
}

// str is what an output writes. Of what is undefined it is nothing, and notes the name.
func (x *jinjaRun) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case *jinjaUndefined:
		if v.name != "" {
			x.r.miss(v.name)
		}
		return ""
	}
	return x.repr(v)
}

// repr is what Python's repr makes of a value.
func (x *jinjaRun) repr(v any) string {
	var b []byte
	x.appendRepr(&b, v)
	return string(b)
}

func (x *jinjaRun) appendRepr(b *[]byte, v any) {
	x.step()
	start := len(*b)
	switch v := v.(type) {
	case nil:
		*b = append(*b, "None"...)
	case bool:
		if v {
			*b = append(*b, "True"...)
		} else {
			*b = append(*b, "False"...)
		}
	case int64:
		*b = strconv.AppendInt(*b, v, 10)
	case float64:
		*b = append(*b, floatRepr(v)...)
	case jinjaBig:
		*b = append(*b, v...)
	case string:
		x.pay(4 * len(v))
		*b = appendQuoted(*b, v, false)
		return
	case *jinjaUndefined:
		*b = append(*b, "Undefined"...)
	case *jinjaLoop:
		*b = append(*b, "<loop>"...)
	case *jinjaList:
		x.appendItems(b, "[]"[:], v)
		return
	case *jinjaNamespace:
		x.appendMembers(b, &v.jinjaDict)
		return
	case *jinjaDict:
		x.appendMembers(b, v)
		return
	}
	x.pay(len(*b) - start)
}

func (x *jinjaRun) appendItems(b *[]byte, brackets string, l *jinjaList) {
	if l.tuple {
		brackets = "()"
	}
	*b = append(*b, brackets[0])
	x.deeper(func() {
		for i, item := range l.items {
			if i > 0 {
				*b = append(*b, ", "...)
			}
			x.pay(2)
			x.appendRepr(b, item)
		}
	})
	if l.tuple && len(l.items) == 1 {
		*b = append(*b, ',')
	}
	*b = append(*b, brackets[1])
}

func (x *jinjaRun) appendMembers(b *[]byte, d *jinjaDict) {
	*b = append(*b, '{')
	x.deeper(func() {
		for i, key := range d.keys {
			if i > 0 {
				*b = append(*b, ", "...)
			}
			x.pay(4)
			x.appendRepr(b, key)
			*b = append(*b, ": "...)
			x.appendRepr(b, d.values[i])
		}
	})
	*b = append(*b, '}')
}

// list is what a for walks: the elements of a list, the keys of a mapping, the characters of a text, nothing of what is
// undefined.
func (x *jinjaRun) list(v any) []any {
	x.step()
	switch v := v.(type) {
	case *jinjaList:
		return v.items
	case *jinjaDict:
		return v.keys
	case string:
		runes := x.runes(v)
		x.pay(24 * len(runes))
		list := make([]any, len(runes))
		for i, r := range runes {
			list[i] = string(r)
		}
		return list
	case *jinjaUndefined:
		x.str(v)
		return nil
	}
	jinjaFail("walks through %s, which has no elements", jinjaType(v))
	return nil
}

func (x *jinjaRun) runes(s string) []rune {
	x.pay(4 * len(s))
	return []rune(s)
}

// jinjaNumber is a value as int64 or float64; a boolean is 1 or 0.
func jinjaNumber(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	case int64, float64:
		return v, true
	}
	return nil, false
}

func toFloat(number any) float64 {
	if i, ok := number.(int64); ok {
		return float64(i)
	}
	return number.(float64)
}

func (x *jinjaRun) equal(a, b any) (same bool) {
	x.step()
	m, okA := jinjaNumber(a)
	n, okB := jinjaNumber(b)
	if okA && okB {
		if i, ok := m.(int64); ok {
			if j, ok := n.(int64); ok {
				return i == j
			}
		}
		return toFloat(m) == toFloat(n)
	}
	switch a := a.(type) {
	case *jinjaList:
		b, ok := b.(*jinjaList)
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
	case *jinjaDict:
		b, ok := b.(*jinjaDict)
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
	case *jinjaUndefined:
		_, ok := b.(*jinjaUndefined)
		return ok
	case string:
		if b, ok := b.(string); ok {
			x.r.steps -= min(len(a), len(b)) / 256
			return a == b
		}
		return false
	}
	return a == b
}

// order compares two numbers, texts or lists: below 0, 0 or above.
func (x *jinjaRun) order(a, b any) (order int) {
	x.step()
	m, okA := jinjaNumber(a)
	n, okB := jinjaNumber(b)
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
			x.r.steps -= min(len(s), len(t)) / 256
			return strings.Compare(s, t)
		}
	}
	if l, ok := a.(*jinjaList); ok {
		if k, ok := b.(*jinjaList); ok {
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
	jinjaFail("compares %s with %s", jinjaType(a), jinjaType(b))
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
func (x *jinjaRun) contains(hay, needle any) bool {
	x.step()
	switch hay := hay.(type) {
	case string:
		s, ok := needle.(string)
		if !ok {
			if _, undefined := needle.(*jinjaUndefined); undefined {
				return false
			}
			jinjaFail("looks for %s in a text", jinjaType(needle))
		}
		x.r.steps -= len(hay) / 64
		return strings.Contains(hay, s)
	case *jinjaDict:
		_, ok := hay.get(x, needle)
		return ok
	case *jinjaList:
		for _, item := range hay.items {
			if x.equal(item, needle) {
				return true
			}
		}
		return false
	case *jinjaUndefined:
		return false
	}
	jinjaFail("looks for something in %s", jinjaType(hay))
	return false
}

// sorted is a copy of a list in order; with caseless, texts without regard to case.
func (x *jinjaRun) sorted(items []any, key func(any) any, caseless, reverse bool) []any {
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

// tojson is what Jinja's filter of that name writes: keys in order, all that is not ASCII escaped, and < > & ' too.
func (x *jinjaRun) tojson(v any, indent int) string {
	var b []byte
	x.appendJSON(&b, v, indent, "\n")
	return string(b)
}

func (x *jinjaRun) appendJSON(b *[]byte, v any, indent int, line string) {
	switch v := v.(type) {
	case string:
		x.step()
		x.pay(6 * len(v))
		*b = appendASCII(*b, v)
	case nil:
		*b = append(*b, "null"...)
	case bool:
		*b = strconv.AppendBool(*b, v)
	case float64:
		switch {
		case math.IsInf(v, 1):
			*b = append(*b, "Infinity"...)
		case math.IsInf(v, -1):
			*b = append(*b, "-Infinity"...)
		case math.IsNaN(v):
			*b = append(*b, "NaN"...)
		default:
			x.appendRepr(b, v)
		}
	case int64, jinjaBig:
		x.appendRepr(b, v)
	case *jinjaList:
		x.jsonBlock(b, "[]", len(v.items), indent, line, func(i int, line string) {
			x.appendJSON(b, v.items[i], indent, line)
		})
	case *jinjaDict:
		order := make([]any, len(v.keys))
		for i := range order {
			order[i] = int64(i)
		}
		order = x.sorted(order, func(i any) any { return v.keys[i.(int64)] }, false, false)
		x.jsonBlock(b, "{}", len(order), indent, line, func(i int, line string) {
			at := order[i].(int64)
			key := v.keys[at]
			if s, ok := key.(string); ok {
				x.appendJSON(b, s, indent, line)
			} else {
				var k []byte
				x.appendJSON(&k, key, indent, line)
				*b = append(append(append(*b, '"'), k...), '"')
			}
			*b = append(*b, ": "...)
			x.appendJSON(b, v.values[at], indent, line)
		})
	default:
		jinjaFail("makes JSON of %s", jinjaType(v))
	}
}

func (x *jinjaRun) jsonBlock(b *[]byte, brackets string, n, indent int, line string, one func(i int, line string)) {
	x.step()
	*b = append(*b, brackets[0])
	inner := line
	if indent > 0 {
		x.payTimes(len(line)+indent, int64(n)+1)
		inner = line + strings.Repeat(" ", indent)
	}
	x.deeper(func() {
		for i := range n {
			x.pay(4)
			if i > 0 {
				*b = append(*b, ',')
				if indent <= 0 {
					*b = append(*b, ' ')
				}
			}
			if indent > 0 {
				*b = append(*b, inner...)
			}
			one(i, inner)
		}
	})
	if indent > 0 && n > 0 {
		*b = append(*b, line...)
	}
	*b = append(*b, brackets[1])
}

// appendASCII writes a JSON string as Python's json does with ensure_ascii, and as Jinja then makes it safe for HTML.
func appendASCII(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\'' || r > '~' && r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		case r >= 0x10000:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
