package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// Set replaces a member where it stands, or appends it. o may be changed.
func Set(o wire.Object, name string, value json.RawMessage) wire.Object {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = value
			return o
		}
	}
	return append(o, jsonscan.Member{Name: name, Value: value})
}

// Encode writes an object with its members in their order. Values keep their text; nil is null.
func Encode(o wire.Object) json.RawMessage {
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

// Writer is an object that is being written. It is used in one expression: newObject().str("a", "b").end().
type Writer []byte

func NewObject() Writer { return append(make(Writer, 0, 128), '{') }

// Within begins an object behind b; end then gives back all.
func Within(b []byte) Writer { return append(b, '{') }

// Name begins a member; the names that are written have nothing to escape.
func (o Writer) Name(name string) Writer {
	if o[len(o)-1] != '{' {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), '"', ':')
}

// Str adds a member that is a string.
func (o Writer) Str(name, value string) Writer { return jsonscan.AppendString(o.Name(name), value) }

// Raw adds a member that is JSON.
func (o Writer) Raw(name string, value json.RawMessage) Writer {
	return append(o.Name(name), value...)
}

func (o Writer) End() json.RawMessage { return json.RawMessage(append(o, '}')) }

// Array writes a list of values.
func Array(values []json.RawMessage) json.RawMessage {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}
	return AppendArray(make([]byte, 0, size), values)
}

func AppendArray(b []byte, values []json.RawMessage) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// Compact takes out the blanks between tokens.
func Compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		panic(fmt.Sprintf("render: JSON that was checked does not compact: %v", err))
	}
	return b.Bytes()
}

// MemberOf is one member of an object.
func MemberOf(name string, value json.RawMessage) jsonscan.Member {
	return jsonscan.Member{Name: name, Value: value}
}

func Quote(text string) json.RawMessage { return jsonscan.AppendString(nil, text) }

// IsNull says whether a value is absent or null, which mean the same.
func IsNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Object reads an object; nil if raw is anything else.
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

// Member reads a member of an object; nil if there is none.
func Member(raw json.RawMessage, name string) json.RawMessage {
	v, _ := Object(raw).Get(name)
	return v
}

// Elements lists an array; nil if raw is anything else.
func Elements(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	list := []json.RawMessage{}
	for _, e := range jsonscan.Elements(raw) {
		list = append(list, e)
	}
	return list
}

// Text reads a string; "" if raw is anything else.
func Text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Unquote(raw)
}

// Without is an object less one member.
func Without(o wire.Object, name string) wire.Object {
	var rest wire.Object
	for _, m := range o {
		if m.Name != name {
			rest = append(rest, m)
		}
	}
	return rest
}
