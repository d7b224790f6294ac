package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// toJSON returns what Jinja's filter tojson writes: keys sorted, everything outside ASCII
// escaped, and < > & ' as well.
func (x *run) toJSON(v any, indent int) string {
	w := jsonWriter{x: x, indent: indent}
	w.value(v, "\n")
	return string(w.b)
}

// jsonWriter writes values as JSON. Its methods get the line break, with its indentation,
// of the block that they are in.
type jsonWriter struct {
	x      *run
	b      []byte
	indent int
}

func (w *jsonWriter) value(v any, lineBreak string) {
	switch v := v.(type) {
	case string:
		w.x.step()
		// One byte may become six: \u003c.
		w.x.pay(6 * len(v))
		w.b = appendASCII(w.b, v)
	case nil:
		w.b = append(w.b, "null"...)
	case bool:
		w.b = strconv.AppendBool(w.b, v)
	case int64, float64, bigInteger:
		w.x.appendRepr(&w.b, v)

	case *listValue:
		w.block("[]", len(v.items), lineBreak, func(i int, lineBreak string) {
			w.value(v.items[i], lineBreak)
		})
	case *dictValue:
		order := w.keyOrder(v)
		w.block("{}", len(order), lineBreak, func(i int, lineBreak string) {
			at := order[i].(int64)
			w.key(v.keys[at], lineBreak)
			w.b = append(w.b, ": "...)
			w.value(v.values[at], lineBreak)
		})

	default:
		fail("makes JSON of %s", typeName(v))
	}
}

// keyOrder returns the positions of a mapping's keys, sorted by key.
func (w *jsonWriter) keyOrder(d *dictValue) []any {
	order := make([]any, len(d.keys))
	for i := range order {
		order[i] = int64(i)
	}

	return w.x.sorted(order, func(i any) any { return d.keys[i.(int64)] }, false, false)
}

// key writes a key, which must become a string.
func (w *jsonWriter) key(key any, lineBreak string) {
	if _, ok := key.(string); ok {
		w.value(key, lineBreak)
		return
	}

	w.b = append(w.b, '"')
	w.value(key, lineBreak)
	w.b = append(w.b, '"')
}

func (w *jsonWriter) block(brackets string, n int, lineBreak string, one func(i int, lineBreak string)) {
	w.x.step()
	w.b = append(w.b, brackets[0])
	// Without an indentation everything is on one line.
	inner := lineBreak
	if w.indent > 0 {
		w.x.payTimes(len(lineBreak)+w.indent, int64(n)+1)
		inner = lineBreak + strings.Repeat(" ", w.indent)
	}

	w.x.deeper(func() {
		for i := range n {
			w.x.pay(4)
			if i > 0 {
				w.b = append(w.b, ',')
				if w.indent <= 0 {
					w.b = append(w.b, ' ')
				}
			}
			if w.indent > 0 {
				w.b = append(w.b, inner...)
			}
			one(i, inner)
		}
	})

	if w.indent > 0 && n > 0 {
		w.b = append(w.b, lineBreak...)
	}
	w.b = append(w.b, brackets[1])
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
