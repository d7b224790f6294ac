package otlp

import (
	"encoding/hex"
	"encoding/json"
	"errors"
)

// Span is one decoded span.
type Span struct {
	TraceID [16]byte
	SpanID  [8]byte
	Start   uint64          // nanoseconds since 1970, 0 if it has none
	Body    json.RawMessage // as the package comment shows it; the receiver owns it

	// Plumbing is set for a span of an app's HTTP, database or similar instrumentation that says
	// nothing about a model call, as far as it shows by itself.
	Plumbing bool
}

// Form is the encoding of a request.
type Form int

// The encodings of OTLP over HTTP.
const (
	Protobuf Form = iota
	JSON
)

// Refused are the spans or log records of a request that were not taken, each for its own
// sake.
type Refused struct {
	Spans  int    // or log records
	Reason string // of the first one

	// Dropped are log records that are not about model calls. Their sender need not know.
	Dropped int
}

// ErrMalformed means that a request as a whole cannot be decoded.
var ErrMalformed = errors.New("the body is not an OTLP request")

// Traces decodes a request for /v1/traces and calls take with each span, in their order.
// It returns the spans that it refused. The error wraps ErrMalformed, or is take's; after
// one, spans may have been taken already.
func Traces(body []byte, form Form, take func(Span) error) (Refused, error) {
	d := &decoding{signal: &traces}
	d.take = func(it item, body []byte) error {
		p := it.(*parts)
		return take(Span{
			TraceID:  [16]byte(p.traceID),
			SpanID:   [8]byte(p.spanID),
			Start:    p.start,
			Body:     body,
			Plumbing: p.isPlumbing(d.scope),
		})
	}

	return decode(body, form, d)
}

// traces is the signal of spans.
var traces = signal{
	resources:    "resourceSpans",
	scopes:       []string{"scopeSpans", "instrumentationLibrarySpans"}, // the latter in old versions
	items:        "spans",
	fromJSON:     func(object json.RawMessage) item { return jsonSpan(object) },
	fromProtobuf: func(message []byte) (item, error) { return protobufSpan(message) },
}

// Close returns the body of the event that closes a trace. It is a span with the id zero, which no
// other span may have, so it is stored, forwarded and found like one.
func Close(trace [16]byte) json.RawMessage {
	p := parts{
		traceID: trace[:],
		spanID:  make([]byte, 8),
		name:    []byte("trace closed"),
	}
	return p.append([]byte(`{"resource":{},"scope":{}`))
}

// shownMax is the length of a parent's or a linked id, and of the name of an enum, beyond which
// it is left out.
const shownMax = 64

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

// check returns why the span cannot be kept.
func (p *parts) check() error {
	switch {
	case len(p.traceID) != 16 || isZero(p.traceID):
		return errTrace
	case len(p.spanID) != 8 || isZero(p.spanID):
		return errSpan
	}

	return nil
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
