package otlp

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"promptspool/api/wire"
)

// Span is one decoded span.
type Span struct {
	TraceID [16]byte
	SpanID  [8]byte
	Start   uint64          // nanoseconds since 1970, 0 if it has none
	Body    json.RawMessage // as the package comment shows it; the receiver owns it
}

// Form is the encoding of a request.
type Form int

// The encodings of OTLP over HTTP.
const (
	Protobuf Form = iota
	JSON
)

// Refused are the spans of a request that were not taken, each for its own sake.
type Refused struct {
	Spans  int
	Reason string // of the first one
}

// ErrMalformed means that a request as a whole cannot be decoded.
var ErrMalformed = errors.New("the body is not an OTLP request")

// Traces decodes a request for /v1/traces and calls take with each span, in their order.
// It returns the spans that it refused. The error wraps ErrMalformed, or is take's; after
// one, spans may have been taken already.
func Traces(body []byte, form Form, take func(Span) error) (Refused, error) {
	d := &decoding{
		take: take,
		room: repeatedBytes + repeatedMax*len(body),
	}

	var err error
	if form == JSON {
		err = d.jsonTraces(body)
	} else {
		err = d.protobufTraces(body)
	}

	return d.refused, err
}

// These bound the repetition of resources and scopes: all bodies together have at most so many
// times the bytes of the request, and so many bytes besides. That is enough for 512 small spans,
// as many as exporters send by default, with a resource of 6 KiB.
const (
	repeatedMax   = 16
	repeatedBytes = 4 << 20
)

// shownMax is the length of a parent's or a linked id, and of the name of an enum, beyond which
// it is left out.
const shownMax = 64

// Bounds of nesting of a value.
const (
	plainLevelsMax = 100  // beyond it a value becomes the text of its JSON
	levelsMax      = 5000 // beyond it a span is refused
)

// Why a span is refused.
var (
	errDeep  = fmt.Errorf("a value is nested deeper than %d", levelsMax)
	errLarge = fmt.Errorf("the span is larger than %d bytes as JSON with its resource", wire.BodyBytesMax)
	errRoom  = errors.New("resource and scope are too large to be kept with each of so many spans; " +
		"send fewer spans in a request")
	errTrace = errors.New("traceId must be 16 bytes, not all zero")
	errSpan  = errors.New("spanId must be 8 bytes, not all zero")
)

// decoding is one call of Traces.
type decoding struct {
	take    func(Span) error
	refused Refused
	room    int // bytes that bodies may still have together
}

// refuse counts a span that is not taken.
func (d *decoding) refuse(reason error) {
	if d.refused.Spans == 0 {
		d.refused.Reason = reason.Error()
	}
	d.refused.Spans++
}

// parts are what a span is written from. Lists hold their elements as JSON.
type parts struct {
	traceID, spanID   []byte
	traceState        []byte
	parent            []byte // as it is written
	flags             uint64
	name              []byte
	kind              []byte // JSON
	start, end        uint64
	attributes        []byte
	droppedAttributes uint64
	events            []byte
	droppedEvents     uint64
	links             []byte
	droppedLinks      uint64
	message           []byte
	code              []byte // JSON
}

// add writes a span behind its resource and scope, and hands it on. err is why its parts
// could not be read.
func (d *decoding) add(resource, scope []byte, p *parts, err error) error {
	switch {
	case err != nil:
	case len(p.traceID) != 16 || isZero(p.traceID):
		err = errTrace
	case len(p.spanID) != 8 || isZero(p.spanID):
		err = errSpan
	}

	// Before a byte is copied: a refused span costs no more than its own bytes.
	size := len(resource) + len(scope) + p.size()
	switch {
	case err != nil:
	case size > wire.BodyBytesMax:
		err = errLarge
	case size > d.room:
		err = errRoom
	}
	if err != nil {
		d.refuse(err)
		return nil
	}

	// What is refused below has been copied, and so is paid for, too.
	d.room -= size
	body := slices.Grow([]byte(nil), size)
	body = p.append(append(append(body, resource...), scope...))

	// Escaped, a text may have six times its length.
	more := len(body) - size
	switch {
	case len(body) > wire.BodyBytesMax:
		d.refuse(errLarge)
		return nil
	case more > d.room:
		d.refuse(errRoom)
		return nil
	}
	d.room -= more

	return d.take(Span{
		TraceID: [16]byte(p.traceID),
		SpanID:  [8]byte(p.spanID),
		Start:   p.start,
		Body:    body,
	})
}

// size returns about how many bytes append adds if it need not escape any.
func (p *parts) size() int {
	return len(p.attributes) + len(p.events) + len(p.links) + len(p.name) + len(p.message) + len(p.traceState) + 400
}

// append appends the span to b, which ends with its scope, and closes the body.
func (p *parts) append(b []byte) []byte {
	o := begin(append(b, `,"span":`...))

	o.member("traceId")
	o.b = appendHex(o.b, p.traceID)
	o.member("spanId")
	o.b = appendHex(o.b, p.spanID)
	o.text("traceState", p.traceState)
	o.text("parentSpanId", p.parent)
	o.number("flags", p.flags)
	o.textAlways("name", p.name)
	o.raw("kind", p.kind)
	o.nanos("startTimeUnixNano", p.start)
	o.nanos("endTimeUnixNano", p.end)

	o.list("attributes", p.attributes)
	o.number("droppedAttributesCount", p.droppedAttributes)
	o.list("events", p.events)
	o.number("droppedEventsCount", p.droppedEvents)
	o.list("links", p.links)
	o.number("droppedLinksCount", p.droppedLinks)

	if len(p.message)+len(p.code) > 0 {
		o.member("status")
		status := begin(o.b)
		status.text("message", p.message)
		status.raw("code", p.code)
		o.b = status.end()
	}

	return append(o.end(), '}')
}

// head is what a resource, or a resource and a scope, are written from.
type head struct {
	name, version     []byte
	attributes        []byte
	droppedAttributes uint64
	schemaURL         []byte
}

// appendResource returns the beginning of a body, with the resource.
func (h *head) appendResource() []byte {
	o := begin(nil)
	o.member("resource")
	o.b = h.append(o.b)
	o.text("resourceSchemaUrl", h.schemaURL)

	return o.b
}

// appendScope returns the part of a body with the scope.
func (h *head) appendScope() []byte {
	o := object{comma: true}
	o.member("scope")
	o.b = h.append(o.b)
	o.text("scopeSchemaUrl", h.schemaURL)

	return o.b
}

func (h *head) append(b []byte) []byte {
	o := begin(b)
	o.text("name", h.name)
	o.text("version", h.version)
	o.list("attributes", h.attributes)
	o.number("droppedAttributesCount", h.droppedAttributes)

	return o.end()
}

// event is what an event of a span is written from.
type event struct {
	at                uint64
	name              []byte
	attributes        []byte
	droppedAttributes uint64
}

func (e *event) append(b []byte) []byte {
	o := begin(appendComma(b))
	o.nanos("timeUnixNano", e.at)
	o.text("name", e.name)
	o.list("attributes", e.attributes)
	o.number("droppedAttributesCount", e.droppedAttributes)

	return o.end()
}

// link is what a link of a span is written from.
type link struct {
	traceID, spanID   []byte // as they are written
	traceState        []byte
	attributes        []byte
	droppedAttributes uint64
	flags             uint64
}

func (l *link) append(b []byte) []byte {
	o := begin(appendComma(b))
	o.text("traceId", l.traceID)
	o.text("spanId", l.spanID)
	o.text("traceState", l.traceState)
	o.list("attributes", l.attributes)
	o.number("droppedAttributesCount", l.droppedAttributes)
	o.number("flags", l.flags)

	return o.end()
}

// appendHex appends bytes as a JSON string of hexadecimal digits.
func appendHex(b, id []byte) []byte {
	return append(hex.AppendEncode(append(b, '"'), id), '"')
}

// shownID returns a parent's or a linked id as it is written: nothing if it is zero.
func shownID(id []byte) []byte {
	if isZero(id) || hex.EncodedLen(len(id)) > shownMax {
		return nil
	}
	return hex.AppendEncode(nil, id)
}
