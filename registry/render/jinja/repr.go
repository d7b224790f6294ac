package jinja

import (
	"fmt"
	"strconv"

	"promptspool/registry/render/language"
)

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

// repr returns what Python's repr makes of a value.
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
		*b = append(*b, language.FloatRepr(v)...)
	case bigInteger:
		*b = append(*b, v...)
	case *undefined:
		*b = append(*b, "Undefined"...)
	case *loopState:
		*b = append(*b, "<loop>"...)
	case *macro:
		*b = fmt.Appendf(*b, "<Macro '%s'>", v.name)

	// These pay for themselves.
	case string:
		x.pay(4 * len(v))
		*b = language.AppendQuoted(*b, v)
		return
	case *listValue:
		x.appendItems(b, v)
		return
	case *namespace:
		x.appendMembers(b, &v.dictValue)
		return
	case *dictValue:
		x.appendMembers(b, v)
		return
	}

	// The bytes written above.
	x.pay(len(*b) - start)
}

func (x *run) appendItems(b *[]byte, l *listValue) {
	brackets := "[]"
	switch {
	// As Python writes a tuple of one: (1,).
	case l.tuple && len(l.items) == 1:
		brackets = "(,)"
	case l.tuple:
		brackets = "()"
	}

	x.appendBlock(b, brackets, len(l.items), func(i int) { x.appendRepr(b, l.items[i]) })
}

func (x *run) appendMembers(b *[]byte, d *dictValue) {
	x.appendBlock(b, "{}", len(d.keys), func(i int) {
		x.appendRepr(b, d.keys[i])
		*b = append(*b, ": "...)
		x.appendRepr(b, d.values[i])
	})
}

// appendBlock appends n parts, each of which one appends, between brackets.
func (x *run) appendBlock(b *[]byte, brackets string, n int, one func(i int)) {
	*b = append(*b, brackets[0])
	x.deeper(func() {
		for i := range n {
			if i > 0 {
				*b = append(*b, ", "...)
			}
			x.pay(4)
			one(i)
		}
	})
	*b = append(*b, brackets[1:]...)
}
