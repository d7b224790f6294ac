// Package jsonscan reads JSON in place: it checks, walks and skips values in their bytes,
// and decodes only the strings that a caller asks for. It also writes strings. It
// allocates nothing but the texts that it returns, and the time of each function is
// linear in the bytes that it looks at.
package jsonscan

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Cursor walks the members of a JSON object or the elements of an array. The caller reads
// or skips each value, and moves At after it:
//
//	for c := Enter(b, i); c.Next(); c.At = SkipValue(b, c.At) {
//	}
type Cursor struct {
	Start int    // where the member's name begins, or the element
	Name  []byte // as written, with quotes; nil in an array
	At    int    // where the value begins. After the last one: after the bracket, or -1 if this is not JSON

	b     []byte
	end   byte // the closing bracket
	later bool // this is not the first member or element
}

// Enter returns a cursor in front of the first member or element of the value whose
// bracket is b[i].
func Enter(b []byte, i int) Cursor {
	// In ASCII ] and } come two after [ and {.
	return Cursor{b: b, At: i + 1, end: b[i] + 2}
}

// Next moves to the next member or element, and reports whether there is one. It checks
// the syntax around values, but not the values themselves.
func (c *Cursor) Next() bool {
	if c.At < 0 {
		return false
	}

	b := c.b
	i := SkipSpace(b, c.At)
	// Unless the rest is well-formed.
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
		i = checkString(b, i)
		if i < 0 {
			return false
		}
		c.Name = b[c.Start:i]

		i = SkipSpace(b, i)
		if i == len(b) || b[i] != ':' {
			return false
		}
		i = SkipSpace(b, i+1)
	}

	c.At = i

	return true
}

// value returns the current value and moves after it. The JSON must be valid.
func (c *Cursor) value() json.RawMessage {
	start := c.At
	c.At = SkipValue(c.b, start)

	// The capacity ends with the value, so that appending to it cannot overwrite what
	// follows.
	return c.b[start:c.At:c.At]
}

// Member is one member of a JSON object.
type Member struct {
	Name  string          // unescaped
	Value json.RawMessage // aliases the object's bytes
	Start int             // index of the first byte of the name
	End   int             // index just after the value
}

// Members yields the members of a valid JSON object in order, repeated ones included.
// Their values alias object.
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

// Elements yields the elements of a valid JSON array, with their index. They alias array.
func Elements(array json.RawMessage) iter.Seq2[int, json.RawMessage] {
	return func(yield func(int, json.RawMessage) bool) {
		c := Enter(array, SkipSpace(array, 0))
		for i := 0; c.Next() && yield(i, c.value()); i++ {
		}
	}
}

// Lookup returns the first member called name, and whether it exists and is not null. raw
// must be empty or valid JSON; in anything but an object it finds nothing. The value
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

// SkipSpace returns the index of the first byte from b[i] on that is not JSON white
// space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// SkipValue returns the index just after the value that begins at b[i]. b must be valid
// JSON; with anything else it may panic.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return SkipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	}

	// A number or a word ends where punctuation or white space begins.
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != ']' && b[i] != '}' {
		i++
	}
	return i
}

// skipContainer is SkipValue for an object or array.
func skipContainer(b []byte, i int) int {
	for level := 0; ; i++ {
		switch b[i] {
		case '"':
			i = SkipString(b, i) - 1
		case '{', '[':
			level++
		case '}', ']':
			level--
			if level == 0 {
				return i + 1
			}
		}
	}
}

// SkipString returns the index just after the string that begins at b[i], or len(b) if
// it does not end.
func SkipString(b []byte, i int) int {
	start := i + 1

	// Most bytes of a body are in strings, so leap from quote to quote.
	for i = start; ; i++ {
		leap := bytes.IndexByte(b[i:], '"')
		if leap < 0 {
			return len(b)
		}
		i += leap
		if Backslashes(b, start, i)%2 == 0 {
			return i + 1
		}
	}
}

// Backslashes counts the backslashes right before b[i], at or after b[from].
func Backslashes(b []byte, from, i int) (n int) {
	for i-n > from && b[i-n-1] == '\\' {
		n++
	}
	return n
}

// Depth returns how deep brackets nest outside strings. It stops counting just above
// most. b may be anything.
func Depth(b []byte, most int) int {
	deepest, level := 0, 0
	for i := 0; i < len(b) && deepest <= most; i++ {
		switch b[i] {
		case '"':
			i = SkipString(b, i) - 1
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}

	return deepest
}
