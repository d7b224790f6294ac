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

// protobufRequest reads a request, such as an ExportTraceServiceRequest.
func (d *decoding) protobufRequest(body []byte) error {
	return d.apart(eachField(body, func(f field) error {
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
	// Nothing says that the resource precedes its items.
	var resource *head
	return eachField(message, func(f field) (err error) {
		if !f.isMessage(2) {
			return nil
		}
		if resource == nil {
			if resource, err = protobufResourceHead(message); err != nil {
				return err
			}
		}
		return d.protobufScope(resource, f.bytes)
	})
}

// protobufResourceHead reads the resource of a ResourceSpans or the like. It may come in several
// parts, which protobuf reads as if they followed each other.
func protobufResourceHead(message []byte) (*head, error) {
	h := &head{attributes: list{message, resourceAttributes}}

	return h, eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			return eachField(f.bytes, func(f field) error {
				if f.number == 2 {
					h.droppedAttributes = f.n
				}
				return nil
			})
		case f.isMessage(3):
			h.schemaURL = text{b: f.bytes}
		}
		return nil
	})
}

// protobufScope reads a ScopeSpans.
func (d *decoding) protobufScope(resource *head, message []byte) error {
	began := false
	return eachField(message, func(f field) error {
		if !f.isMessage(2) || !d.next() {
			return nil
		}

		// Nothing says that the scope precedes its items.
		if !began {
			scope, err := protobufScopeHead(message)
			if err == nil {
				err = d.begin(resource, scope)
			}
			if err != nil {
				return err
			}
			began = true
		}

		// An error of the item goes with it: the next one may be whole.
		it, err := d.signal.fromProtobuf(f.bytes)
		return d.add(it, err)
	})
}

// protobufScopeHead reads the scope of a ScopeSpans.
func protobufScopeHead(message []byte) (*head, error) {
	h := &head{attributes: list{message, scopeAttributes}}

	return h, eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			return h.readProtobufScope(f.bytes)
		case f.isMessage(3):
			h.schemaURL = text{b: f.bytes}
		}
		return nil
	})
}

// readProtobufScope reads a part of a scope.
func (h *head) readProtobufScope(message []byte) error {
	return eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			h.name = text{b: f.bytes}
		case f.isMessage(2):
			h.version = text{b: f.bytes}
		case f.number == 4:
			h.droppedAttributes = f.n
		}
		return nil
	})
}

// The lists of messages, by the numbers of their fields.
var (
	resourceAttributes = elementsOf(1, elementsOf(1, protobufPair))
	scopeAttributes    = elementsOf(1, elementsOf(3, protobufPair))
	spanAttributes     = elementsOf(9, protobufPair)
	spanEvents         = elementsOf(11, protobufEvent)
	spanLinks          = elementsOf(13, protobufLink)
	eventAttributes    = elementsOf(3, protobufPair)
	linkAttributes     = elementsOf(4, protobufPair)
	logAttributes      = elementsOf(6, protobufPair)
)

// elementsOf returns a writer of all fields of a message that have a number.
func elementsOf(number protowire.Number, element writer) writer {
	return func(o *output, message []byte, level int) error {
		return protobufElements(o, message, level, number, element)
	}
}

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

// protobufSpan reads a Span. Its errors concern this span only.
func protobufSpan(message []byte) (*parts, error) {
	var p parts
	err := eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			p.traceID = f.bytes
		case f.isMessage(2):
			p.spanID = f.bytes
		case f.isMessage(3):
			p.traceState = text{b: f.bytes}
		case f.isMessage(4):
			p.parent = shownID(f.bytes)
		case f.isMessage(5):
			p.name = text{b: f.bytes}
		case f.number == 6:
			p.kind = enum(f.n)
		case f.number == 7:
			p.start = f.n
		case f.number == 8:
			p.end = f.n
		case f.isMessage(9):
			p.attributes = list{message, spanAttributes}
		case f.number == 10:
			p.droppedAttributes = f.n
		case f.isMessage(11):
			p.events = list{message, spanEvents}
		case f.number == 12:
			p.droppedEvents = f.n
		case f.isMessage(13):
			p.links = list{message, spanLinks}
		case f.number == 14:
			p.droppedLinks = f.n
		case f.isMessage(15):
			return p.readProtobufStatus(f.bytes)
		case f.number == 16:
			p.flags = f.n
		}
		return nil
	})

	return &p, err
}

// readProtobufStatus reads a part of a Status.
func (p *parts) readProtobufStatus(message []byte) error {
	return eachField(message, func(f field) error {
		switch {
		case f.isMessage(2):
			p.message = text{b: f.bytes}
		case f.number == 3:
			p.code = enum(f.n)
		}
		return nil
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

// protobufEvent writes a Span.Event.
func protobufEvent(o *output, message []byte, _ int) error {
	var e event
	err := eachField(message, func(f field) error {
		switch {
		case f.number == 1:
			e.at = f.n
		case f.isMessage(2):
			e.name = text{b: f.bytes}
		case f.isMessage(3):
			e.attributes = list{message, eventAttributes}
		case f.number == 4:
			e.droppedAttributes = f.n
		}
		return nil
	})
	if err != nil {
		return err
	}

	return e.write(o)
}

// protobufLink writes a Span.Link.
func protobufLink(o *output, message []byte, _ int) error {
	var l link
	err := eachField(message, func(f field) error {
		switch {
		case f.isMessage(1):
			l.traceID = shownID(f.bytes)
		case f.isMessage(2):
			l.spanID = shownID(f.bytes)
		case f.isMessage(3):
			l.traceState = text{b: f.bytes}
		case f.isMessage(4):
			l.attributes = list{message, linkAttributes}
		case f.number == 5:
			l.droppedAttributes = f.n
		case f.number == 6:
			l.flags = f.n
		}
		return nil
	})
	if err != nil {
		return err
	}

	return l.write(o)
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
func protobufValue(o *output, message []byte, level int) (err error) {
	switch level {
	case levelsMax:
		return errDeep
	case plainLevelsMax:
		// Deeper ones are JSON within a text, which readers need not follow.
		o.nested(func() { err = protobufValue(o, message, level+1) })
		return err
	}

	var value field
	if err := readValue(&value, message); err != nil {
		return err
	}

	return writeValue(o, &value, level)
}

// readValue reads an AnyValue. Of the members of a oneof the last one counts.
func readValue(value *field, message []byte) error {
	return eachField(message, func(f field) error {
		if f.number >= 1 && f.number <= 7 {
			*value = f
		}
		return nil
	})
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
