// Package rawjson reads and writes JSON values that keep their text: numbers and unknown
// members leave it as they came. Its input was validated before.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Text returns a string value, or "" if raw is anything else.
func Text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Unquote(raw)
}

// Object returns the members of an object, or nil if raw is anything else.
func Object(raw json.RawMessage) wire.Object {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	o, err := wire.ParseObject(raw)
	if err != nil {
		return nil
	}
	return o
}

// Of returns a member of an object, or nil if there is none.
func Of(o wire.Object, name string) json.RawMessage {
	v, _ := o.Get(name)
	return v
}

// Member is Of for an object that is not read yet.
func Member(raw json.RawMessage, name string) json.RawMessage { return Of(Object(raw), name) }

// Elements returns the elements of an array, or nil if raw is anything else.
func Elements(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}

	// Never nil, which callers take for something else than an array.
	list := []json.RawMessage{}
	for _, e := range jsonscan.Elements(raw) {
		list = append(list, e)
	}
	return list
}

// IsNull reports whether a value is absent or null, which mean the same.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Set replaces a member in its place, or appends it. It may change o.
func Set(o wire.Object, name string, value json.RawMessage) wire.Object {
	for i := range o {
		// In its place, because people read what is rendered.
		if o[i].Name == name {
			o[i].Value = value
			return o
		}
	}

	return append(o, jsonscan.Member{Name: name, Value: value})
}

// Merge sets all members of another object. It may change o.
func Merge(o, other wire.Object) wire.Object {
	for _, m := range other {
		o = Set(o, m.Name, m.Value)
	}

	return o
}

// Without returns an object without one of its members.
func Without(o wire.Object, name string) wire.Object {
	var rest wire.Object
	for _, m := range o {
		if m.Name != name {
			rest = append(rest, m)
		}
	}
	return rest
}

// NamedValue is one member of an object.
type NamedValue = jsonscan.Member

// MemberOf makes one member of an object.
func MemberOf(name string, value json.RawMessage) NamedValue {
	return NamedValue{Name: name, Value: value}
}

// Quote writes a string.
func Quote(text string) json.RawMessage { return jsonscan.AppendString(nil, text) }

// Encode writes an object with its members in their order. Values keep their text; nil is
// null.
func Encode(o wire.Object) json.RawMessage {
	// In one allocation: a template with pictures is many megabytes.
	size := 2
	for _, m := range o {
		size += len(m.Name) + len(m.Value) + 4
	}

	b := append(make([]byte, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsonscan.AppendString(b, m.Name)
		b = append(b, ':')
		if m.Value == nil {
			b = append(b, "null"...)
		}
		b = append(b, m.Value...)
	}

	return append(b, '}')
}

// Array writes a list of values.
func Array(values []json.RawMessage) json.RawMessage {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}

	b := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}

	return append(b, ']')
}

// ArrayOf writes a list of what write makes of each element.
func ArrayOf[T any](list []T, write func(T) json.RawMessage) json.RawMessage {
	values := make([]json.RawMessage, len(list))
	for i, e := range list {
		values[i] = write(e)
	}

	return Array(values)
}

// Compact removes the whitespace between tokens. It panics if raw is not JSON.
func Compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		panic(fmt.Sprintf("rawjson: JSON that was validated cannot be compacted: %v", err))
	}

	return b.Bytes()
}

// Form fills values into the places of a form, which are its dollar signs: strings, and JSON as it is.
func Form(form string, values ...any) json.RawMessage {
	b := make([]byte, 0, 128)
	for _, v := range values {
		before, after, found := strings.Cut(form, "$")
		if !found {
			break
		}
		b = append(b, before...)
		switch v := v.(type) {
		case string:
			b = jsonscan.AppendString(b, v)
		case json.RawMessage:
			b = append(b, v...)
		}
		form = after
	}

	return append(b, form...)
}

// Writer writes an object in one expression: NewObject().Str("a", "b").End(). Every call
// returns the Writer to use next.
type Writer []byte

// NewObject begins an object.
func NewObject() Writer { return append(make(Writer, 0, 128), '{') }

// name begins a member. It must have nothing to escape.
func (w Writer) name(name string) Writer {
	if w[len(w)-1] != '{' {
		w = append(w, ',')
	}

	return append(append(append(w, '"'), name...), '"', ':')
}

// Str adds a member that is a string.
func (w Writer) Str(name, value string) Writer { return jsonscan.AppendString(w.name(name), value) }

// Raw adds a member that is JSON.
func (w Writer) Raw(name string, value json.RawMessage) Writer {
	return append(w.name(name), value...)
}

// Some adds a member that is a string, unless it is empty.
func (w Writer) Some(name, value string) Writer {
	if value == "" {
		return w
	}
	return w.Str(name, value)
}

// SomeRaw adds a member that is JSON, unless there is none.
func (w Writer) SomeRaw(name string, value json.RawMessage) Writer {
	if value == nil {
		return w
	}
	return w.Raw(name, value)
}

// End ends the object and returns it.
func (w Writer) End() json.RawMessage { return json.RawMessage(append(w, '}')) }
