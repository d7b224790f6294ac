package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"promptspool/registry/render/language"
)

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
