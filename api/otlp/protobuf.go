package otlp

import (
	"errors"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

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
