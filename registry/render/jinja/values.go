package jinja

import (
	"encoding/json"
	"math"
	"strconv"

	"promptspool/api/wire"
	"promptspool/registry/render/language"
	"promptspool/registry/render/python"
)

// A value is nil (None), bool, int64, float64, bigInteger, string, *listValue, *dictValue, *namespace, *loopState or
// *undefined. Values never change once they are made, but for namespaces.

// bigInteger is an integer beyond 64 bits, as it was written.
type bigInteger string

// undefined is what is not there. name is what it was called, "" if it has no name.
type undefined struct{ name string }

type listValue struct {
	items []any
	tuple bool
	names []string // of the elements, if they have some
}

// dictValue keeps its members in the order they came.
type dictValue struct {
	keys, values []any
	index        map[any]int
}

type namespace struct{ dictValue }

func (x *run) dict() *dictValue {
	x.pay(64)
	return &dictValue{index: make(map[any]int)}
}

// key brings a value into the form by which a dict finds it: 1, 1.0 and true are the same.
func (x *run) key(v any) any {
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
	case string:
		x.read(len(v)) // to hash it
		return v
	case nil, int64, bigInteger:
		return v
	case *listValue:
		if v.tuple {
			return x.repr(v)
		}
	}
	fail("uses %s as a key", typeName(v))
	return nil
}

func (x *run) put(d *dictValue, key, value any) {
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

func (d *dictValue) get(x *run, key any) (any, bool) {
	if l, ok := key.(*listValue); ok && !l.tuple {
		return nil, false
	}
	if _, ok := key.(*dictValue); ok {
		return nil, false
	}
	if _, ok := key.(*undefined); ok {
		return nil, false
	}
	i, ok := d.index[x.key(key)]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// items are the members as pairs.
func (x *run) pairs(d *dictValue) []any {
	x.pay(80 * len(d.keys))
	list := make([]any, len(d.keys))
	for i := range list {
		list[i] = &listValue{items: []any{d.keys[i], d.values[i]}, tuple: true}
	}
	return list
}

// decode makes a value of JSON.
func (x *run) decode(raw json.RawMessage) (v any) {
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
		l := &listValue{}
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
	if !python.IsInteger(number) {
		return python.ParseFloat(number)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		return n
	}
	x.pay(len(number))
	return bigInteger(number)
}

// typeName names a value in an error.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int64, bigInteger:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a text"
	case *listValue:
		return "a list"
	case *dictValue, *namespace:
		return "a mapping"
	case *undefined:
		if v.name != "" {
			return language.Shorten(v.name) + ", which is undefined,"
		}
		return "what is undefined"
	}
	return "the loop"
}

func (x *run) truth(v any) bool {
	x.step()
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *listValue:
		return len(v.items) > 0
	case *dictValue:
		return len(v.keys) > 0
	}
	return true
}

// str is what an output writes. Of what is undefined it is nothing, and notes the name.
func (x *run) str(v any) string {
	switch v := v.(type) {
	case string:
		x.read(len(v))
		return v
	case *undefined:
		if v.name != "" {
			x.r.Miss(v.name)
		}
		return ""
	}
	return x.repr(v)
}

// repr is what Python's repr makes of a value.
func (x *run) repr(v any) string {
	var b []byte
	x.appendRepr(&b, v)
	return string(b)
}

func (x *run) appendRepr(b *[]byte, v any) {
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
		*b = append(*b, python.FloatRepr(v)...)
	case bigInteger:
		*b = append(*b, v...)
	case string:
		x.pay(4 * len(v))
		*b = python.AppendQuoted(*b, v, false)
		return
	case *undefined:
		*b = append(*b, "Undefined"...)
	case *loopState:
		*b = append(*b, "<loop>"...)
	case *listValue:
		x.appendItems(b, "[]"[:], v)
		return
	case *namespace:
		x.appendMembers(b, &v.dictValue)
		return
	case *dictValue:
		x.appendMembers(b, v)
		return
	}
	x.pay(len(*b) - start)
}

func (x *run) appendItems(b *[]byte, brackets string, l *listValue) {
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

func (x *run) appendMembers(b *[]byte, d *dictValue) {
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
func (x *run) list(v any) []any {
	x.step()
	switch v := v.(type) {
	case *listValue:
		return v.items
	case *dictValue:
		return v.keys
	case string:
		runes := x.runes(v)
		x.pay(24 * len(runes))
		list := make([]any, len(runes))
		for i, r := range runes {
			list[i] = string(r)
		}
		return list
	case *undefined:
		x.str(v)
		return nil
	}
	fail("walks through %s, which has no elements", typeName(v))
	return nil
}

func (x *run) runes(s string) []rune {
	x.pay(4 * len(s))
	return []rune(s)
}

// toNumber is a value as int64 or float64; a boolean is 1 or 0.
func toNumber(v any) (any, bool) {
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
