package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"promptspool/api/wire"
)

// set replaces a member where it stands, or appends it. o may be changed.
func set(o wire.Object, name string, value json.RawMessage) wire.Object {
	for i := range o {
		if o[i].Name == name {
			o[i].Value = value
			return o
		}
	}
	return append(o, wire.Member{Name: name, Value: value})
}

// encode writes an object with its members in their order. Values keep their text; nil is null.
func encode(o wire.Object) json.RawMessage {
	size := 2
	for _, m := range o {
		size += len(m.Name) + len(m.Value) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = wire.AppendString(b, m.Name)
		b = append(b, ':')
		if m.Value == nil {
			b = append(b, "null"...)
		}
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// jsonObject is an object that is being written. It is used in one expression: newObject().str("a", "b").end().
type jsonObject []byte

func newObject() jsonObject { return append(make(jsonObject, 0, 128), '{') }

// within begins an object behind b; end then gives back all.
func within(b []byte) jsonObject { return append(b, '{') }

// name begins a member; the names that are written have nothing to escape.
func (o jsonObject) name(name string) jsonObject {
	if o[len(o)-1] != '{' {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), '"', ':')
}

// str adds a member that is a string.
func (o jsonObject) str(name, value string) jsonObject { return wire.AppendString(o.name(name), value) }

// raw adds a member that is JSON.
func (o jsonObject) raw(name string, value json.RawMessage) jsonObject {
	return append(o.name(name), value...)
}

func (o jsonObject) end() json.RawMessage { return json.RawMessage(append(o, '}')) }

// array writes a list of values.
func array(values []json.RawMessage) json.RawMessage {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}
	return appendArray(make([]byte, 0, size), values)
}

func appendArray(b []byte, values []json.RawMessage) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// compact takes out the blanks between tokens.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		panic(fmt.Sprintf("render: JSON that was checked does not compact: %v", err))
	}
	return b.Bytes()
}

// memberOf is one member of an object.
func memberOf(name string, value json.RawMessage) wire.Member {
	return wire.Member{Name: name, Value: value}
}

func quoted(text string) json.RawMessage { return wire.AppendString(nil, text) }

// isNull says whether a value is absent or null, which mean the same.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// object reads an object; nil if raw is anything else.
func object(raw json.RawMessage) wire.Object {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	o, err := wire.ParseObject(raw)
	if err != nil {
		return nil
	}
	return o
}

// member reads a member of an object; nil if there is none.
func member(raw json.RawMessage, name string) json.RawMessage {
	v, _ := object(raw).Get(name)
	return v
}

// elements lists an array; nil if raw is anything else.
func elements(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	list := []json.RawMessage{}
	for _, e := range wire.Elements(raw) {
		list = append(list, e)
	}
	return list
}

// text reads a string; "" if raw is anything else.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return wire.Unquote(raw)
}

// shorten cuts a caller's text for a message.
func shorten(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "..."
}
