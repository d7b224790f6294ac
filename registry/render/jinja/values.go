package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

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

// How values without a text are written.
var (
	pythonWords = map[any]string{nil: "None", true: "True", false: "False"}
	jsonWords   = map[any]string{nil: "null", true: "true", false: "false"}
)

// repr returns what Python's repr makes of a value.
func (x *run) repr(v any) string {
	w := writer{x: x, words: pythonWords, quote: language.AppendQuoted}
	w.value(v, "")

	return string(w.b)
}

// toJSON returns what Jinja's filter tojson writes: keys sorted, everything outside ASCII
// escaped, and < > & ' as well.
func (x *run) toJSON(v any, indent int) string {
	w := writer{x: x, words: jsonWords, quote: appendASCII, json: true, indent: max(indent, 0)}
	w.value(v, "\n")

	return string(w.b)
}

// writer writes values as text, as Python's repr or as JSON. Its methods get the line break,
// with its indentation, of the block that they are in.
type writer struct {
	x      *run
	b      []byte
	words  map[any]string // for none, true and false
	quote  func(b []byte, s string) []byte
	json   bool
	indent int // of blocks in JSON; 0 for everything on one line
}

func (w *writer) value(v any, lineBreak string) {
	w.x.step()
	start := len(w.b)
	switch v := v.(type) {
	case nil, bool:
		w.b = append(w.b, w.words[v]...)
	case int64:
		w.b = strconv.AppendInt(w.b, v, 10)
	case float64:
		w.b = append(w.b, language.FloatRepr(v)...)
	case bigInteger:
		w.b = append(w.b, v...)

	// These pay for themselves.
	case string:
		// One byte may become six: \u003c.
		w.x.pay(6 * len(v))
		w.b = w.quote(w.b, v)
		return
	case *listValue:
		w.list(v, lineBreak)
		return
	case *dictValue:
		w.members(v, lineBreak)
		return
	default:
		w.nameless(v, lineBreak)
	}

	// The bytes written above.
	w.x.pay(len(w.b) - start)
}

// nameless writes what JSON has no form for.
func (w *writer) nameless(v any, lineBreak string) {
	if w.json {
		fail("makes JSON of %s", typeName(v))
	}

	switch v := v.(type) {
	case *undefined:
		w.b = append(w.b, "Undefined"...)
	case *loopState:
		w.b = append(w.b, "<loop>"...)
	case *macro:
		w.b = fmt.Appendf(w.b, "<Macro '%s'>", v.name)
	case *namespace:
		w.members(&v.dictValue, lineBreak)
	}
}

func (w *writer) list(l *listValue, lineBreak string) {
	brackets := "[]"
	switch {
	case w.json || !l.tuple:
	// As Python writes a tuple of one: (1,).
	case len(l.items) == 1:
		brackets = "(,)"
	default:
		brackets = "()"
	}

	w.block(brackets, len(l.items), lineBreak, func(i int, inner string) { w.value(l.items[i], inner) })
}

// members writes a mapping, in JSON sorted by its keys, which must become strings.
func (w *writer) members(d *dictValue, lineBreak string) {
	pairs := w.x.pairs(d)
	if w.json {
		pairs = w.x.sorted(pairs, func(pair any) any { return pair.(*listValue).items[0] }, false)
	}

	w.block("{}", len(pairs), lineBreak, func(i int, lineBreak string) {
		pair, mark := pairs[i].(*listValue), ""
		if w.json && !isString(pair.items[0]) {
			mark = `"`
		}
		w.b = append(w.b, mark...)
		w.value(pair.items[0], lineBreak)
		w.b = append(append(w.b, mark...), ": "...)
		w.value(pair.items[1], lineBreak)
	})
}

// block writes n parts, each of which one writes, between brackets.
func (w *writer) block(brackets string, n int, lineBreak string, one func(i int, lineBreak string)) {
	separator, inner := ", ", lineBreak
	w.b = append(w.b, brackets[0])
	// Without an indentation everything is on one line.
	if w.indent > 0 && n > 0 {
		w.x.payTimes(len(lineBreak)+w.indent, int64(n)+1)
		inner += strings.Repeat(" ", w.indent)
		separator = "," + inner
		w.b = append(w.b, inner...)
	}

	w.x.deeper(func() {
		for i := range n {
			w.x.pay(4)
			if i > 0 {
				w.b = append(w.b, separator...)
			}
			one(i, inner)
		}
	})
	if w.indent > 0 && n > 0 {
		w.b = append(w.b, lineBreak...)
	}
	w.b = append(w.b, brackets[1:]...)
}

// appendASCII appends a JSON string as Python's json writes it with ensure_ascii, and as
// Jinja then makes it safe for HTML.
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
		// A surrogate pair.
		case r >= 0x10000:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case r < ' ' || r > '~' || strings.ContainsRune(`<>&'`, r):
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}

	return append(b, '"')
}
