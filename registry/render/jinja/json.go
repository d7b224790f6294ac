package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tojson is what Jinja's filter of that name writes: keys in order, all that is not ASCII escaped, and < > & ' too.
func (x *run) tojson(v any, indent int) string {
	var b []byte
	x.appendJSON(&b, v, indent, "\n")
	return string(b)
}

func (x *run) appendJSON(b *[]byte, v any, indent int, line string) {
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
	case int64, bigInteger:
		x.appendRepr(b, v)
	case *listValue:
		x.jsonBlock(b, "[]", len(v.items), indent, line, func(i int, line string) {
			x.appendJSON(b, v.items[i], indent, line)
		})
	case *dictValue:
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
		fail("makes JSON of %s", typeName(v))
	}
}

func (x *run) jsonBlock(b *[]byte, brackets string, n, indent int, line string, one func(i int, line string)) {
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
