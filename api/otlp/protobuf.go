package otlp

import (
	"errors"
	"fmt"
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

// errProtobuf means that a message is cut off or is no protobuf.
var errProtobuf = errors.New("it is not valid protobuf")

// eachField calls fn with every field of a message. It looks at nothing inside of them,
// so walking a message several times costs little.
func eachField(message []byte, fn func(f *field) error) error {
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

		if err := fn(&f); err != nil {
			return err
		}
	}

	return nil
}

// protobufRequest reads a request, such as an ExportTraceServiceRequest.
func (d *decoding) protobufRequest(body []byte) error {
	return d.apart(eachField(body, func(f *field) error {
		if !f.isMessage(1) {
			return nil
		}
		return d.protobufResource(f.bytes)
	}))
}

// apart makes ErrMalformed of a fault of the request itself.
func (d *decoding) apart(err error) error {
	if errors.Is(err, errProtobuf) || errors.Is(err, errDeep) {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return err
}

// protobufResource reads a ResourceSpans or the like.
func (d *decoding) protobufResource(message []byte) error {
	// The resource first: nothing says that it precedes its items.
	var h head
	var resource []byte
	err := eachField(message, func(f *field) error {
		switch {
		case f.isMessage(1):
			resource = merge(resource, f.bytes)
		case f.isMessage(3):
			h.schemaURL = f.bytes
		}
		return nil
	})
	// Read only once all its parts are joined: they may be far from each other.
	if err == nil {
		err = eachField(resource, func(f *field) (err error) {
			switch {
			case f.isMessage(1):
				h.attributes, err = protobufPair(h.attributes, f.bytes, 1)
			case f.number == 2:
				h.droppedAttributes = f.n
			}
			return err
		})
	}
	if err != nil {
		return err
	}

	// Written once, and repeated as bytes with each span.
	written := h.appendResource()

	return eachField(message, func(f *field) error {
		if !f.isMessage(2) {
			return nil
		}
		return d.protobufScope(written, f.bytes)
	})
}

// merge joins the parts of a message that was sent in several: protobuf reads them as if
// they followed each other.
func merge(message, more []byte) []byte {
	// Without room behind it: an append must not overwrite the request, of which it is part.
	if message == nil {
		return more[:len(more):len(more)]
	}
	return append(message, more...)
}

// protobufScope reads a ScopeSpans.
func (d *decoding) protobufScope(resource, message []byte) error {
	var h head
	var scope []byte
	err := eachField(message, func(f *field) error {
		switch {
		case f.isMessage(1):
			scope = merge(scope, f.bytes)
		case f.isMessage(3):
			h.schemaURL = f.bytes
		}
		return nil
	})
	if err == nil {
		err = eachField(scope, func(f *field) (err error) {
			switch {
			case f.isMessage(1):
				h.name = f.bytes
			case f.isMessage(2):
				h.version = f.bytes
			case f.isMessage(3):
				h.attributes, err = protobufPair(h.attributes, f.bytes, 1)
			case f.number == 4:
				h.droppedAttributes = f.n
			}
			return err
		})
	}
	if err != nil {
		return err
	}

	d.scope = h.name
	written := h.appendScope()

	return eachField(message, func(f *field) error {
		if !f.isMessage(2) {
			return nil
		}
		// An error of the item goes with it: the next one may be whole.
		it, err := d.signal.fromProtobuf(f.bytes)
		return d.add(resource, written, it, err)
	})
}

// protobufSpan reads a Span. Its errors concern this span only.
func protobufSpan(message []byte) (*parts, error) {
	var p parts
	var status []byte
	err := eachField(message, func(f *field) (err error) {
		switch {
		case f.isMessage(1):
			p.traceID = f.bytes
		case f.isMessage(2):
			p.spanID = f.bytes
		case f.isMessage(3):
			p.traceState = f.bytes
		case f.isMessage(4):
			p.parent = shownID(f.bytes)
		case f.isMessage(5):
			p.name = f.bytes
		case f.number == 6:
			p.kind = enum(f.n)
		case f.number == 7:
			p.start = f.n
		case f.number == 8:
			p.end = f.n
		case f.isMessage(9):
			p.attributes, err = protobufPair(p.attributes, f.bytes, 1)
		case f.number == 10:
			p.droppedAttributes = f.n
		case f.isMessage(11):
			p.events, err = protobufEvent(p.events, f.bytes)
		case f.number == 12:
			p.droppedEvents = f.n
		case f.isMessage(13):
			p.links, err = protobufLink(p.links, f.bytes)
		case f.number == 14:
			p.droppedLinks = f.n
		case f.isMessage(15):
			status = merge(status, f.bytes)
		case f.number == 16:
			p.flags = f.n
		}
		return err
	})
	// It is refused with this error, whatever of it was read.
	if err != nil {
		return &p, err
	}

	err = eachField(status, func(f *field) error {
		switch {
		case f.isMessage(2):
			p.message = f.bytes
		case f.number == 3:
			p.code = enum(f.n)
		}
		return nil
	})

	return &p, err
}

// enum returns an enum's value as JSON, nothing for zero.
func enum(n uint64) []byte {
	if n == 0 {
		return nil
	}
	// Negative values of an enum are sent with 64 bits.
	return strconv.AppendInt(nil, int64(int32(n)), 10)
}

// protobufEvent appends a Span.Event to a list.
func protobufEvent(b, message []byte) ([]byte, error) {
	var e event
	err := eachField(message, func(f *field) (err error) {
		switch {
		case f.number == 1:
			e.at = f.n
		case f.isMessage(2):
			e.name = f.bytes
		case f.isMessage(3):
			e.attributes, err = protobufPair(e.attributes, f.bytes, 1)
		case f.number == 4:
			e.droppedAttributes = f.n
		}
		return err
	})

	return e.append(b), err
}

// protobufLink appends a Span.Link to a list.
func protobufLink(b, message []byte) ([]byte, error) {
	var l link
	err := eachField(message, func(f *field) (err error) {
		switch {
		case f.isMessage(1):
			l.traceID = shownID(f.bytes)
		case f.isMessage(2):
			l.spanID = shownID(f.bytes)
		case f.isMessage(3):
			l.traceState = f.bytes
		case f.isMessage(4):
			l.attributes, err = protobufPair(l.attributes, f.bytes, 1)
		case f.number == 5:
			l.droppedAttributes = f.n
		case f.number == 6:
			l.flags = f.n
		}
		return err
	})

	return l.append(b), err
}

// protobufPair appends a KeyValue to a list.
func protobufPair(b, message []byte, level int) ([]byte, error) {
	var key, value []byte
	err := eachField(message, func(f *field) error {
		switch {
		case f.isMessage(1):
			key = f.bytes
		case f.isMessage(2):
			value = f.bytes
		}
		return nil
	})
	if err != nil {
		return b, err
	}

	o := begin(appendComma(b))
	o.textAlways("key", key)
	o.member("value")
	// Masked before it is ever written: what the value looks like says nothing.
	if secrets.IsAttribute(key) {
		o.b = append(o.b, maskedValue...)
		return o.end(), nil
	}
	o.b, err = protobufValue(o.b, value, level)

	return o.end(), err
}

// protobufValue appends an AnyValue. level is how deep it is nested.
func protobufValue(b, message []byte, level int) ([]byte, error) {
	switch level {
	case levelsMax:
		return b, errDeep
	case plainLevelsMax:
		// Deeper ones are JSON within a text, which readers need not follow.
		inner, err := protobufValue(nil, message, level+1)
		return appendNested(b, inner), err
	}

	// Of the members of a oneof the last one counts.
	var last field
	err := eachField(message, func(f *field) error {
		if f.number >= 1 && f.number <= 7 {
			last = *f
		}
		return nil
	})
	if err != nil {
		return b, err
	}

	switch {
	case last.isMessage(1):
		return appendString(b, last.bytes), nil
	case last.number == 2:
		return appendBool(b, last.n != 0), nil
	case last.number == 3:
		return appendInt(b, int64(last.n)), nil
	case last.number == 4:
		return appendDouble(b, math.Float64frombits(last.n)), nil
	case last.isMessage(5):
		return protobufList(b, `{"arrayValue":{"values":[`, last.bytes, level+1, protobufElement)
	case last.isMessage(6):
		return protobufList(b, `{"kvlistValue":{"values":[`, last.bytes, level+1, protobufPair)
	case last.isMessage(7):
		return appendBytes(b, last.bytes), nil
	}

	return append(b, `{}`...), nil
}

// protobufElement appends an AnyValue to a list.
func protobufElement(b, message []byte, level int) ([]byte, error) {
	return protobufValue(appendComma(b), message, level)
}

// protobufList appends the values of an ArrayValue or a KeyValueList.
func protobufList(
	b []byte, opening string, message []byte, level int,
	element func(b, message []byte, level int) ([]byte, error),
) ([]byte, error) {
	b = append(b, opening...)
	// Empty lists are kept: they are not the same as no value.
	err := eachField(message, func(f *field) (err error) {
		if f.isMessage(1) {
			b, err = element(b, f.bytes, level)
		}
		return err
	})

	return append(b, `]}}`...), err
}
