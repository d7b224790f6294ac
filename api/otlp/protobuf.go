package otlp

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire/jsonscan"
	"promptspool/api/wire/secrets"
)

// field is one field of a protobuf message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // of a field with a length
	n      uint64 // of the others
}

// isMessage reports whether the field has this number and a length, as texts, bytes and
// messages do. A field of another kind is not the one that OTLP defines.
func (f *field) isMessage(number protowire.Number) bool {
	return f.number == number && f.kind == protowire.BytesType
}

// errProtobuf means that a message is cut off or is not a protobuf.
var errProtobuf = errors.New("it is not valid protobuf")

// eachField calls fn with every field of a message. It looks at nothing inside of them,
// so walking a message several times costs little.
func eachField(message []byte, fn func(f field) error) error {
	for len(message) > 0 {
		var f field
		var n int
		f.number, f.kind, n = protowire.ConsumeTag(message)
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]

		switch f.kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			f.n, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.n, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.n = uint64(v)
		default:
			// Groups and whatever a later protobuf adds: skipped, as unknown fields are.
			n = protowire.ConsumeFieldValue(f.number, f.kind, message)
		}
		if n < 0 {
			return errProtobuf
		}
		message = message[n:]

		if err := fn(f); err != nil {
			return err
		}
	}

	return nil
}

// writer writes an element of a list. Its error is that of the source.
type writer func(o *output, source []byte, level int) error

// protobufElements writes all fields of a message that have a number.
func protobufElements(o *output, message []byte, level int, number protowire.Number, element writer) error {
	return eachField(message, func(f field) error {
		switch {
		case !f.isMessage(number):
			return nil
		case o.full:
			return errLarge
		}
		return element(o, f.bytes, level)
	})
}

// enum returns an enum's value as JSON, nothing for zero.
func enum(n uint64) []byte {
	if n == 0 {
		return nil
	}
	// Negative values of an enum are sent with 64 bits.
	return strconv.AppendInt(nil, int64(int32(n)), 10)
}

// protobufPair writes a KeyValue, unless it has neither a key nor a value.
func protobufPair(o *output, message []byte, level int) error {
	var key, value []byte
	err := eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			key = f.bytes
		case f.isMessage(2):
			value = f.bytes
		}
		return nil
	})
	// Nothing is written of most pairs of which nothing is kept.
	if err != nil || len(key)+len(value) == 0 {
		return err
	}

	before := len(o.b)
	o.begin()
	o.member("key")
	o.string(text{b: key})
	o.member("value")
	// Masked before it is ever written: what the value looks like says nothing.
	if secrets.IsAttribute(key) {
		o.put(maskedValue)
	} else {
		err = protobufValue(o, value, level)
	}
	o.endPair(before)

	return err
}

// protobufValue writes an AnyValue. level is how deep it is nested.
func protobufValue(o *output, message []byte, level int) error {
	if level > levelsMax {
		return errDeep
	}

	// Of the members of a oneof the last one counts.
	var member field
	err := eachField(message, func(f field) error {
		if f.number >= 1 && f.number <= 7 {
			member = f
		}
		return nil
	})
	if err != nil {
		return err
	}

	return writeValue(o, &member, level)
}

// writeValue writes the member of an AnyValue.
func writeValue(o *output, value *field, level int) (err error) {
	switch {
	case value.isMessage(1):
		o.stringValue(text{b: value.bytes})
	case value.number == 2:
		o.boolValue(value.n != 0)
	case value.number == 3:
		o.intValue(int64(value.n))
	case value.number == 4:
		o.doubleValue(math.Float64frombits(value.n))
	// Empty lists are kept: they are not the same as no value.
	case value.isMessage(5):
		o.put(`{"arrayValue":{"values":[`)
		err = protobufElements(o, value.bytes, level+1, 1, protobufElement)
		o.put(`]}}`)
	case value.isMessage(6):
		o.put(`{"kvlistValue":{"values":[`)
		err = protobufElements(o, value.bytes, level+1, 1, protobufPair)
		o.put(`]}}`)
	case value.isMessage(7):
		o.bytesValue(value.bytes)
	default:
		o.put(`{}`)
	}

	return err
}

// protobufElement writes an AnyValue of a list.
func protobufElement(o *output, message []byte, level int) error {
	o.comma()
	return protobufValue(o, message, level)
}

// value is a value as it was sent: JSON, or else a field of protobuf.
type value struct {
	json []byte
	field
	within []byte // the message that the field is of
}

// elements calls fn with the elements of a list. Of anything else there are none.
func (v value) elements(fn func(v value) error) error {
	if v.json != nil {
		if v.json[0] != '[' {
			return nil
		}
		for _, element := range jsonscan.Elements(v.json) {
			if err := fn(value{json: element}); err != nil {
				return err
			}
		}
		return nil
	}

	return eachField(v.within, func(f field) error {
		if !f.isMessage(v.number) {
			return nil
		}
		return fn(value{field: f})
	})
}

func (v value) text() text {
	if v.json != nil {
		return jsonText(v.json)
	}
	return text{b: v.bytes}
}

func (v value) uint() uint64 {
	if v.json != nil {
		return jsonUint(v.json)
	}
	return v.n
}

// id returns an id, which must be of n bytes.
func (v value) id(n int) []byte {
	if v.json != nil {
		return jsonID(v.json, n)
	}
	return v.bytes
}

// shownID returns an id as it is written.
func (v value) shownID(n int) []byte {
	if v.json != nil {
		return jsonShownID(v.json, n)
	}
	return shownID(v.bytes)
}

// enum returns an enum's value as JSON.
func (v value) enum(prefix string, names []string) []byte {
	if v.json != nil {
		return jsonEnum(v.json, prefix, names)
	}
	return enum(v.n)
}

// layout is what is read of a message, which is the same in both encodings.
type layout[T any] []member[T]

// member is a member of a message.
type member[T any] struct {
	number protowire.Number // in protobuf; 0 if it is in JSON only
	name   string           // in JSON
	read   func(m *T, v value) error
}

// set returns a member that is always read.
func set[T any](number protowire.Number, name string, read func(m *T, v value)) member[T] {
	return member[T]{number, name, func(m *T, v value) error {
		read(m, v)
		return nil
	}}
}

// read reads a message into m. A member of another type than OTLP defines is like one that is empty.
func (l layout[T]) read(m *T, v value) error {
	if v.json != nil {
		return eachMember(v.json, func(name, json []byte) error {
			for i := range l {
				if l[i].name == string(name) {
					return l[i].read(m, value{json: json})
				}
			}
			return nil
		})
	}

	return eachField(v.bytes, func(f field) error {
		for i := range l {
			if l[i].number == f.number {
				return l[i].read(m, value{field: f, within: v.bytes})
			}
		}
		return nil
	})
}

// messages returns what writes the messages of a list.
func messages[T any, P interface {
	*T
	write(o *output)
}](l layout[T]) func(o *output, v value) error {
	return func(o *output, v value) error {
		var m T
		return v.elements(func(v value) error {
			if o.full {
				return errLarge
			}
			m = *new(T)
			if err := l.read(&m, v); err != nil {
				return err
			}
			P(&m).write(o)
			return o.fault
		})
	}
}

// text is a text as it was sent. It is read in steps: with the escapes of a long one resolved as a
// whole, it would take its memory a second time.
type text struct {
	b       []byte // what was not read yet
	escaped bool   // it is the inside of a JSON string
	char    [utf8.UTFMax]byte
}

// isEmpty reports whether nothing is left to read.
func (t *text) isEmpty() bool { return len(t.b) == 0 }

// next reads at most n bytes, and not a part of a character, or else the character of an escape. The
// result is valid until the next call.
func (t *text) next(n int) []byte {
	n = min(n, len(t.b))
	if t.escaped {
		leap := bytes.IndexByte(t.b[:n], '\\')
		if leap == 0 {
			_, char, rest := jsonscan.CutEscape(t.b)
			t.b = rest
			return utf8.AppendRune(t.char[:0], char)
		}
		if leap > 0 {
			n = leap
		}
	}

	for range utf8.UTFMax - 1 {
		if 1 < n && n < len(t.b) && !utf8.RuneStart(t.b[n]) {
			n--
		}
	}
	step := t.b[:n]
	t.b = t.b[n:]

	return step
}

// beginning returns the first n bytes.
func (t text) beginning(n int) []byte {
	whole := t.b[:min(n, len(t.b))]
	if !t.escaped || bytes.IndexByte(whole, '\\') < 0 {
		return whole
	}

	whole = nil
	for len(whole) < n && !t.isEmpty() {
		whole = append(whole, t.next(n-len(whole))...)
	}

	return whole[:min(n, len(whole))]
}

// escapeBytes is the length of the longest escape, which may stand for one byte.
const escapeBytes = len(`\u0061`)
