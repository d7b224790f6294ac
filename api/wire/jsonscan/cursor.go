// Package jsonscan reads JSON in place: it checks, walks and skips values in their bytes,
// and decodes only the strings that a caller asks for. It also writes strings. It
// allocates nothing but the texts that it returns, and the time of each function is
// linear in the bytes that it looks at.
package jsonscan

import "encoding/json"

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
