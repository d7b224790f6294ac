package otlp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// BulkSpan is one span of a request for /spans-bulk, which is JSON but not OTLP.
type BulkSpan struct {
	Span
	Name string
	End  uint64 // nanoseconds since 1970, 0 if it has none
	Note string // a sentence about its times, or ""

	// LogRequest is the body of a log-request that the span is sent with; nil if there is none.
	LogRequest json.RawMessage
}

// Bulk decodes the spans of a request for /spans-bulk, an array, and calls take with each, in
// their order. refuse gets the id of a span that it refuses, as it was sent, and the reason. It
// returns those that it did not read, because they are more than ItemsMax. The error is take's.
func Bulk(
	ctx context.Context, spans json.RawMessage, take func(BulkSpan) error, refuse func(spanID, reason string),
) (unread Refused, err error) {
	d := newDecoding(ctx, len(spans))
	defer d.done()

	err = value{json: spans}.elements(func(v value) error {
		if read, err := d.next(&d.items, ItemsMax); !read {
			return err
		}
		b := bulkSpan{isObject: v.json[0] == '{'}
		// JSON was checked before.
		_ = bulkLayout.read(&b, v)
		d.take = func(_ item, body []byte) error {
			return take(BulkSpan{
				Span: Span{
					TraceID:  [16]byte(b.traceID),
					SpanID:   [8]byte(b.spanID),
					Start:    b.start,
					Body:     body,
					Plumbing: b.isPlumbing(b.scope.name, body),
				},
				Name:       shown(b.name),
				End:        b.end,
				Note:       b.note,
				LogRequest: b.logRequest,
			})
		}

		d.refused = Refused{}
		err := d.begin(&b.resource, &b.scope)
		if err == nil {
			err = d.add(&b.parts, b.fault())
		}
		if d.refused.Spans > 0 {
			refuse(shown(b.sentID), d.refused.Reason)
			d.refused = Refused{}
		}
		return err
	})

	return d.refused, err
}

// bulkSpan is what a span of a request for /spans-bulk is written from.
type bulkSpan struct {
	parts
	resource, scope head
	sentID          text // the span's, whatever it is
	isObject        bool
	noTime          error // about the member that has a time which is none
	note            string
	logRequest      json.RawMessage
}

// shown returns the beginning of a text, for an answer.
func shown(t text) string { return strings.ToValidUTF8(string(t.beginning(4*shownMax)), "") }

// errNoSpan is why something that is not a span is refused.
var errNoSpan = errors.New("a span must be an object with name and context")

func (b *bulkSpan) fault() error {
	if !b.isObject {
		return errNoSpan
	}
	return b.noTime
}

// time reads one of the times of a span.
func (b *bulkSpan) time(name string, v value) uint64 {
	nanos, unit, ok := bulkTime(v.json)
	if !ok {
		b.noTime = errors.New(name + " is not a time: send nanoseconds since 1970, or an ISO-8601 time")
	}
	if unit != "" && unit != "nanoseconds" {
		b.note = name + " was read as " + unit + "; send nanoseconds since 1970."
	}

	return nanos
}

// bulkLayout is the layout of a span of a request for /spans-bulk. Its names are those of the span that
// OpenTelemetry's SDK for Python prints, in camelCase here.
var bulkLayout = layout[bulkSpan]{
	set(0, "name", func(b *bulkSpan, v value) { b.name = v.text() }),
	{0, "context", bulkContext.read},
	set(0, "kind", func(b *bulkSpan, v value) { b.kind = v.enum("SpanKind.", spanKinds) }),
	set(0, "parentId", func(b *bulkSpan, v value) { b.parent = v.shownID(8) }),
	set(0, "startTime", func(b *bulkSpan, v value) { b.start = b.time("startTime", v) }),
	set(0, "endTime", func(b *bulkSpan, v value) { b.end = b.time("endTime", v) }),
	{0, "status", bulkStatus.read},
	set(0, "attributes", func(b *bulkSpan, v value) { b.attributes = list{v, writeAttributes} }),
	set(0, "events", func(b *bulkSpan, v value) { b.events = list{v, writeBulkEvents} }),
	set(0, "links", func(b *bulkSpan, v value) { b.links = list{v, writeBulkLinks} }),
	{0, "resource", func(b *bulkSpan, v value) error { return bulkResource.read(&b.resource, v) }},
	{0, "scope", func(b *bulkSpan, v value) error { return scopeLayout.read(&b.scope, v) }},
	{0, "instrumentationScope", func(b *bulkSpan, v value) error { return scopeLayout.read(&b.scope, v) }},
	set(0, "logRequest", func(b *bulkSpan, v value) {
		if v.json[0] == '{' {
			b.logRequest = v.json
		}
	}),
}

// The layouts of what belongs to a span.
var (
	bulkContext = layout[bulkSpan]{
		set(0, "traceId", func(b *bulkSpan, v value) { b.traceID = v.id(16) }),
		set(0, "spanId", func(b *bulkSpan, v value) { b.spanID, b.sentID = v.id(8), v.text() }),
		set(0, "traceState", func(b *bulkSpan, v value) { b.traceState = v.text() }),
	}
	bulkStatus = layout[bulkSpan]{
		set(0, "statusCode", func(b *bulkSpan, v value) { b.code = v.enum("StatusCode.", statusCodes) }),
		set(0, "description", func(b *bulkSpan, v value) { b.message = v.text() }),
	}
	bulkResource = append(resourceLayout[:len(resourceLayout):len(resourceLayout)],
		set(0, "schemaUrl", func(h *head, v value) { h.schemaURL = v.text() }))

	writeBulkEvents = messages(layout[event]{
		set(0, "timestamp", func(e *event, v value) { e.at, _, _ = bulkTime(v.json) }),
		set(0, "time", func(e *event, v value) { e.at, _, _ = bulkTime(v.json) }),
		set(0, "name", func(e *event, v value) { e.name = v.text() }),
		set(0, "attributes", func(e *event, v value) { e.attributes = list{v, writeAttributes} }),
	})
	writeBulkLinks = messages(layout[link]{
		{0, "context", linkLayout.read},
		set(0, "attributes", func(l *link, v value) { l.attributes = list{v, writeAttributes} }),
	})
)

// bulkTime returns a time in nanoseconds since 1970, which is sent as a number, a string of
// digits, an ISO 8601 time, or a pair of seconds and nanoseconds. A number in another unit is read in
// that. It is 0 if there is none; ok is false if it is none of these.
func bulkTime(value []byte) (nanos uint64, unit string, ok bool) {
	if value[0] == '[' {
		var pair [2]uint64
		for i, element := range jsonscan.Elements(value) {
			if i < len(pair) {
				pair[i] = jsonUint(element)
			}
		}
		return pair[0]*1e9 + pair[1], "", true
	}

	word := jsonWord(value)
	if at, unit := wire.SpanTime(string(word)); !at.IsZero() {
		return uint64(at.UnixNano()), unit, true
	}
	// A small number may be of a clock that does not count from 1970.
	nanos = jsonUint(value)
	return nanos, "", nanos != 0 || strings.Trim(string(word), "-.0") == ""
}
