package jsonscan

import (
	"encoding/json"
	"iter"
)

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
