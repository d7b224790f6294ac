package wire

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Cursor goes through the members of a JSON object, or the elements of an array. Each is to be read, or skipped, by moving
// At behind its value:
//
//	for c := Enter(b, i); c.Next(); c.At = SkipValue(b, c.At) {
//	}
type Cursor struct {
	Start int    // where the member's name begins, or the element
	Name  []byte // as it is written, in quotes; nil in an array
	At    int    // where the value begins. After the last: behind the bracket, or -1 where this is not JSON

	b     []byte
	end   byte // the closing bracket
	later bool // this is not the first
}

// Enter returns a cursor in front of the first member of the object, or element of the array, whose bracket is b[i].
func Enter(b []byte, i int) Cursor {
	return Cursor{b: b, At: i + 1, end: b[i] + 2} // ] and } come two behind [ and {
}

// Next moves to the next member or element, and reports whether there is one. It checks everything but the values.
func (c *Cursor) Next() bool {
	if c.At < 0 {
		return false
	}

	b := c.b
	i := SkipSpace(b, c.At)
	c.At = -1
	switch {
	case i == len(b):
		return false
	case b[i] == c.end:
		c.At = i + 1
		return false
	case c.later && b[i] != ',':
		return false
	case c.later:
		i = SkipSpace(b, i+1)
	}

	c.later, c.Start = true, i
	if c.end == '}' {
		if i = checkString(b, i); i < 0 {
			return false
		}
		c.Name = b[c.Start:i]
		if i = SkipSpace(b, i); i == len(b) || b[i] != ':' {
			return false
		}
		i = SkipSpace(b, i+1)
	}
	c.At = i

	return true
}

// value returns the value, and moves behind it. The JSON must be valid.
func (c *Cursor) value() json.RawMessage {
	start := c.At
	c.At = SkipValue(c.b, start)
	return c.b[start:c.At:c.At]
}

// Members walks the members of a JSON object that was found valid, in the order they came, a repeated one each time. Their
// values alias object.
func Members(object json.RawMessage) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		c := Enter(object, SkipSpace(object, 0))
		for c.Next() {
			value := c.value()
			if !yield(Member{Unquote(c.Name), value, c.Start, c.At}) {
				return
			}
		}
	}
}

// Elements walks the elements of a JSON array that was found valid, with their index. They alias array.
func Elements(array json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		c := Enter(array, SkipSpace(array, 0))
		for i := 0; c.Next() && yield(i, c.value()); i++ {
		}
	}
}

// Lookup returns the first member called name of an object inside a body that ParseObject has accepted, and whether it is
// there and not null. Of anything but an object (no bytes at all, an array, a string) it finds nothing. The value
// aliases raw.
func Lookup(raw json.RawMessage, name string) (json.RawMessage, bool) {
	i := SkipSpace(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil, false
	}
	for c := Enter(raw, i); c.Next(); c.At = SkipValue(raw, c.At) {
		if string(UnquoteBytes(c.Name)) == name {
			value := c.value()
			return value, string(value) != "null"
		}
	}

	return nil, false
}

// SkipSpace returns the index of the first byte from b[i] on that is no white space of JSON, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipValue returns the index just behind the JSON value that begins at b[i]. b must be valid JSON; in any other it may panic.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		for level := 0; ; i++ {
			switch b[i] {
			case '"':
				i = SkipString(b, i) - 1
			case '{', '[':
				level++
			case '}', ']':
				if level--; level == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

// SkipString returns the index just behind the string that begins at b[i], or len(b) if it does not end. It leaps from
// quote to quote, for most bytes of a body lie in strings.
func SkipString(b []byte, i int) int {
	start := i + 1
	for i = start; ; i++ {
		leap := bytes.IndexByte(b[i:], '"')
		if leap < 0 {
			return len(b)
		}
		i += leap
		if backslashes(b, start, i)%2 == 0 {
			return i + 1
		}
	}
}

// depth is the deepest nesting of brackets outside strings; it stops counting just above JSONDepthMax. body may be
// anything.
func depth(body []byte) int {
	deepest, now := 0, 0
	for i := 0; i < len(body) && deepest <= JSONDepthMax; i++ {
		switch body[i] {
		case '"':
			i = SkipString(body, i) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}
