package jinja

import (
	"encoding/json"
	"math"
	"strconv"

	"promptspool/api/wire/jsonscan"
	"promptspool/registry/render/language"
)

// A value is nil (None), bool, int64, float64, bigInteger, string, *listValue,
// *dictValue, *namespace, *loopState, *macro or *undefined. Values never change once they are
// made, except namespaces.

// bigInteger is an integer beyond 64 bits, as it was written.
type bigInteger string

// undefined is what is not there. name is how it was called, "" if it has no name.
type undefined struct{ name string }

type listValue struct {
	items []any
	tuple bool
}

// dictValue keeps its members in the order in which they were added.
type dictValue struct {
	keys, values []any
	index        map[any]int
}

type namespace struct{ dictValue }

func (x *run) dict() *dictValue {
	x.pay(64)
	return &dictValue{index: make(map[any]int)}
}

// key returns the form of a value by which a dict finds it: 1, 1.0 and true are the same.
func (x *run) key(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		// A whole float is the same key as the integer.
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v)
		}
		return v
	case string:
		// Hashing reads it.
		x.read(len(v))
		return v
	case nil, int64, bigInteger:
		return v
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

	// About what an entry of a Go map and two slices takes.
	x.pay(96)
	if d.index == nil {
		d.index = make(map[any]int)
	}
	d.index[k] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, value)
}

func (d *dictValue) get(x *run, key any) (any, bool) {
	// A value that cannot be a key is in no dict.
	switch key.(type) {
	case *listValue, *dictValue, *undefined:
		return nil, false
	}

	i, ok := d.index[x.key(key)]
	if !ok {
		return nil, false
	}

	return d.values[i], true
}

// pairs returns the members as tuples of key and value.
func (x *run) pairs(d *dictValue) []any {
	x.pay(80 * len(d.keys))
	list := make([]any, len(d.keys))
	for i := range list {
		list[i] = &listValue{items: []any{d.keys[i], d.values[i]}, tuple: true}
	}

	return list
}

// decode makes a value from JSON.
func (x *run) decode(raw json.RawMessage) any {
	x.step()
	switch raw[0] {
	case '"':
		x.pay(len(raw))
		return jsonscan.Unquote(raw)
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case '[':
		l := &listValue{}
		x.deeper(func() {
			for _, e := range jsonscan.Elements(raw) {
				x.pay(32)
				l.items = append(l.items, x.decode(e))
			}
		})
		return l
	case '{':
		d := x.dict()
		x.deeper(func() {
			for m := range jsonscan.Members(raw) {
				x.pay(len(m.Name))
				x.put(d, m.Name, x.decode(m.Value))
			}
		})
		return d
	}

	return x.decodeNumber(string(raw))
}

func (x *run) decodeNumber(number string) any {
	if !language.IsInteger(number) {
		return language.ParseFloat(number)
	}
	// JSON has integers of any size; beyond 64 bits they keep their text.
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
	case *macro:
		return "a macro"
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

// list returns what a for iterates over: the elements of a list, the keys of a mapping,
// the characters of a string. An undefined value has none.
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
		// Reports it as missing.
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

// toNumber returns a value as int64 or float64. A boolean is 1 or 0.
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

// str returns what an output writes. Of an undefined value that is nothing, and its name
// is reported as missing.
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
