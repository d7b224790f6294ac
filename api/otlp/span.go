package otlp

import (
	"bytes"
	"context"
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

	Dropped int // log records that are not about model calls
}

// ErrMalformed means that a request as a whole cannot be decoded.
var ErrMalformed = errors.New("the body is not an OTLP request")

// Traces decodes a request for /v1/traces and calls take with each span, in their order.
// It returns the spans that it refused. The error wraps ErrMalformed, or is take's; after
// one, spans may have been taken already.
func Traces(ctx context.Context, body []byte, form Form, take func(Span) error) (Refused, error) {
	d := newDecoding(ctx, len(body))
	d.signal = &traces
	d.take = func(it item, body []byte) error {
		p := it.(*parts)
		return take(p.decoded(body, p.isPlumbing(d.scope.name, body)))
	}

	return decode(body, form, d)
}

// traces is the signal of spans.
var traces = signalOf("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans",
	func(v value) (item, error) {
		p := new(parts)
		return p, spanLayout.read(p, v)
	})

// closeBytes is more than the body of Close takes.
const closeBytes = 256

// Close returns the body of the event that closes a trace. It is a span with the id zero, which no
// other span may have, so it is stored, forwarded and found like one.
func Close(trace [16]byte) json.RawMessage {
	p := parts{
		traceID: trace[:],
		spanID:  make([]byte, 8),
		name:    text{b: []byte("trace closed")},
	}
	o := output{b: make([]byte, 0, closeBytes), max: closeBytes}
	o.put(`{"resource":{},"scope":{}`)
	p.write(&o)
	p.close(&o)

	return o.b
}

// shownMax is the length of a parent's or a linked id, and of the name of an enum, beyond which
// it is left out.
const shownMax = 64

// parts are what a span is written from.
type parts struct {
	traceID, spanID   []byte
	traceState        text
	parent            []byte // as it is written
	flags             uint64
	name              text
	kind              []byte // JSON
	start, end        uint64
	attributes        list
	droppedAttributes uint64
	events            list
	droppedEvents     uint64
	links             list
	droppedLinks      uint64
	message           text
	code              []byte // JSON

	written struct{ attributes, events place }
	noise   bool // made of a coding agent's log record that says nothing by itself
}

// spanLayout is the layout of a Span.
var spanLayout = layout[parts]{
	set(1, "traceId", func(p *parts, v value) { p.traceID = v.id(16) }),
	set(2, "spanId", func(p *parts, v value) { p.spanID = v.id(8) }),
	set(3, "traceState", func(p *parts, v value) { p.traceState = v.text() }),
	set(4, "parentSpanId", func(p *parts, v value) { p.parent = v.shownID(8) }),
	set(5, "name", func(p *parts, v value) { p.name = v.text() }),
	set(6, "kind", func(p *parts, v value) { p.kind = v.enum("SPAN_KIND_", spanKinds) }),
	set(7, "startTimeUnixNano", func(p *parts, v value) { p.start = v.uint() }),
	set(8, "endTimeUnixNano", func(p *parts, v value) { p.end = v.uint() }),
	set(9, "attributes", func(p *parts, v value) { p.attributes = list{v, writeAttributes} }),
	set(10, "droppedAttributesCount", func(p *parts, v value) { p.droppedAttributes = v.uint() }),
	set(11, "events", func(p *parts, v value) { p.events = list{v, writeEvents} }),
	set(12, "droppedEventsCount", func(p *parts, v value) { p.droppedEvents = v.uint() }),
	set(13, "links", func(p *parts, v value) { p.links = list{v, writeLinks} }),
	set(14, "droppedLinksCount", func(p *parts, v value) { p.droppedLinks = v.uint() }),
	{15, "status", statusLayout.read},
	set(16, "flags", func(p *parts, v value) { p.flags = v.uint() }),
}

// statusLayout is the layout of its Status.
var statusLayout = layout[parts]{
	set(2, "message", func(p *parts, v value) { p.message = v.text() }),
	set(3, "code", func(p *parts, v value) { p.code = v.enum("STATUS_CODE_", statusCodes) }),
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

// decoded returns the span of which body was written.
func (p *parts) decoded(body []byte, plumbing bool) Span {
	return Span{
		TraceID:  [16]byte(p.traceID),
		SpanID:   [8]byte(p.spanID),
		Start:    p.start,
		Body:     body,
		Plumbing: plumbing,
	}
}

// write writes the span after its scope.
func (p *parts) write(o *output) {
	o.put(`,"span":{`)
	o.id("traceId", p.traceID)
	o.id("spanId", p.spanID)
	o.text("traceState", p.traceState)
	o.text("parentSpanId", text{b: p.parent})
	o.number("flags", p.flags)
	o.member("name")
	o.string(p.name)
	o.raw("kind", p.kind)
	o.nanos("startTimeUnixNano", p.start)
	o.nanos("endTimeUnixNano", p.end)

	p.written.attributes = o.list("attributes", p.attributes)
	o.number("droppedAttributesCount", p.droppedAttributes)
	p.written.events = o.list("events", p.events)
	o.number("droppedEventsCount", p.droppedEvents)
	o.list("links", p.links)
	o.number("droppedLinksCount", p.droppedLinks)

	if !p.message.isEmpty() || len(p.code) > 0 {
		o.member("status")
		o.put("{")
		o.text("message", p.message)
		o.raw("code", p.code)
		o.end()
	}
	o.end()
}

// close closes the span's body.
func (p *parts) close(o *output) { o.end() }

// head is what a resource or a scope is written from.
type head struct {
	name, version     text
	attributes        list
	droppedAttributes uint64
	schemaURL         text
}

// The layouts of a Resource and of an InstrumentationScope.
var (
	resourceLayout = layout[head]{
		set(1, "attributes", func(h *head, v value) { h.attributes = list{v, writeAttributes} }),
		set(2, "droppedAttributesCount", func(h *head, v value) { h.droppedAttributes = v.uint() }),
	}
	scopeLayout = layout[head]{
		set(1, "name", func(h *head, v value) { h.name = v.text() }),
		set(2, "version", func(h *head, v value) { h.version = v.text() }),
		set(3, "attributes", func(h *head, v value) { h.attributes = list{v, writeAttributes} }),
		set(4, "droppedAttributesCount", func(h *head, v value) { h.droppedAttributes = v.uint() }),
	}
)

// writeResource writes the beginning of a body, with the resource.
func (h *head) writeResource(o *output) {
	o.put(`{"resource":`)
	h.write(o)
	o.text("resourceSchemaUrl", h.schemaURL)
}

// writeScope writes the part of a body with the scope.
func (h *head) writeScope(o *output) {
	o.put(`,"scope":`)
	h.write(o)
	o.text("scopeSchemaUrl", h.schemaURL)
}

func (h *head) write(o *output) {
	o.put("{")
	o.text("name", h.name)
	o.text("version", h.version)
	o.list("attributes", h.attributes)
	o.number("droppedAttributesCount", h.droppedAttributes)
	o.end()
}

// event is what an event of a span is written from.
type event struct {
	at                uint64
	name              text
	attributes        list
	droppedAttributes uint64
}

var writeEvents = messages(layout[event]{
	set(1, "timeUnixNano", func(e *event, v value) { e.at = v.uint() }),
	set(2, "name", func(e *event, v value) { e.name = v.text() }),
	set(3, "attributes", func(e *event, v value) { e.attributes = list{v, writeAttributes} }),
	set(4, "droppedAttributesCount", func(e *event, v value) { e.droppedAttributes = v.uint() }),
})

func (e *event) write(o *output) {
	o.begin()
	o.nanos("timeUnixNano", e.at)
	o.text("name", e.name)
	o.list("attributes", e.attributes)
	o.number("droppedAttributesCount", e.droppedAttributes)
	o.end()
}

// link is what a link of a span is written from.
type link struct {
	traceID, spanID   []byte // as they are written
	traceState        text
	attributes        list
	droppedAttributes uint64
	flags             uint64
}

var linkLayout = layout[link]{
	set(1, "traceId", func(l *link, v value) { l.traceID = v.shownID(16) }),
	set(2, "spanId", func(l *link, v value) { l.spanID = v.shownID(8) }),
	set(3, "traceState", func(l *link, v value) { l.traceState = v.text() }),
	set(4, "attributes", func(l *link, v value) { l.attributes = list{v, writeAttributes} }),
	set(5, "droppedAttributesCount", func(l *link, v value) { l.droppedAttributes = v.uint() }),
	set(6, "flags", func(l *link, v value) { l.flags = v.uint() }),
}

var writeLinks = messages(linkLayout)

func (l *link) write(o *output) {
	o.begin()
	o.text("traceId", text{b: l.traceID})
	o.text("spanId", text{b: l.spanID})
	o.text("traceState", l.traceState)
	o.list("attributes", l.attributes)
	o.number("droppedAttributesCount", l.droppedAttributes)
	o.number("flags", l.flags)
	o.end()
}

// isZero reports whether all bytes are zero.
func isZero(id []byte) bool { return len(bytes.Trim(id, "\x00")) == 0 }

// shownID returns a parent's or a linked id as it is written: nothing if it is zero.
func shownID(id []byte) []byte {
	if hex.EncodedLen(len(id)) > shownMax || isZero(id) {
		return nil
	}
	return hex.AppendEncode(nil, id)
}
