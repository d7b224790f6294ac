package otlp

import (
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

	// LogRequest is the body of a log-request that the span is sent with; nil if there is none.
	LogRequest json.RawMessage
}

// Bulk decodes the spans of a request for /spans-bulk, an array, and calls take with each, in
// their order. refuse gets the id of a span that it refuses, as it was sent, and the reason. It
// returns those that it did not read, because they are more than ItemsMax. The error is take's.
func Bulk(
	spans json.RawMessage, take func(BulkSpan) error, refuse func(spanID, reason string),
) (unread Refused, err error) {
	d := newDecoding(len(spans))
	defer d.done()

	err = eachElement(spans, func(object json.RawMessage) error {
		if !d.next() {
			return nil
		}
		b := jsonBulkSpan(object)
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
	return nil
}

// jsonBulkSpan reads a span of a request for /spans-bulk. Its names are those of the span that
// OpenTelemetry's SDK for Python prints, in camelCase here.
func jsonBulkSpan(object json.RawMessage) *bulkSpan {
	b := bulkSpan{isObject: object[0] == '{'}
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "name":
			b.name = jsonText(value)
		case "context":
			b.sentID = b.readContext(value)
		case "kind":
			b.kind = jsonEnum(value, "SpanKind.", spanKinds)
		case "parentId":
			b.parent = jsonShownID(value, 8)
		case "startTime":
			b.start = bulkTime(value)
		case "endTime":
			b.end = bulkTime(value)
		case "status":
			b.readBulkStatus(value)
		case "attributes":
			b.attributes = list{value, jsonAttributes}
		case "events":
			b.events = list{value, bulkEvents}
		case "links":
			b.links = list{value, bulkLinks}
		case "resource":
			b.resource.readJSON(value)
			if url, ok := jsonscan.Lookup(value, "schema_url"); ok {
				b.resource.schemaURL = jsonText(url)
			}
		case "scope", "instrumentationScope":
			b.scope.readJSON(value)
		case "logRequest":
			if value[0] == '{' {
				b.logRequest = value
			}
		}
		return nil
	})

	return &b
}

// readContext reads the ids of a span, and returns its own one as it was sent.
func (p *parts) readContext(object []byte) (sentID text) {
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "traceId":
			p.traceID = jsonID(value, 16)
		case "spanId":
			p.spanID, sentID = jsonID(value, 8), jsonText(value)
		case "traceState":
			p.traceState = jsonText(value)
		}
		return nil
	})

	return sentID
}

// readBulkStatus reads a status, whose members have names of their own.
func (p *parts) readBulkStatus(object []byte) {
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "statusCode":
			p.code = jsonEnum(value, "StatusCode.", statusCodes)
		case "description":
			p.message = jsonText(value)
		}
		return nil
	})
}

// The lists of a span that are not of KeyValues.
var (
	bulkEvents = objectsOf(bulkEvent)
	bulkLinks  = objectsOf(bulkLink)
)

// bulkEvent writes an event of a span.
func bulkEvent(o *output, object []byte) {
	var e event
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "timestamp", "time":
			e.at = bulkTime(value)
		case "name":
			e.name = jsonText(value)
		case "attributes":
			e.attributes = list{value, jsonAttributes}
		}
		return nil
	})

	_ = e.write(o) // JSON was checked before
}

// bulkLink writes a link of a span.
func bulkLink(o *output, object []byte) {
	var l link
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "context":
			l.readContext(value)
		case "attributes":
			l.attributes = list{value, jsonAttributes}
		}
		return nil
	})

	_ = l.write(o) // JSON was checked before
}

// readContext reads the ids of the span that is linked.
func (l *link) readContext(object []byte) {
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "traceId":
			l.traceID = jsonShownID(value, 16)
		case "spanId":
			l.spanID = jsonShownID(value, 8)
		case "traceState":
			l.traceState = jsonText(value)
		}
		return nil
	})
}

// bulkTime returns a time in nanoseconds since 1970, which is sent as a number, a string of
// digits, an ISO 8601 time, or a pair of seconds and nanoseconds; 0 if it is none of these.
func bulkTime(value []byte) uint64 {
	if value[0] == '[' {
		var pair [2]uint64
		for i, element := range jsonscan.Elements(value) {
			if i < len(pair) {
				pair[i] = jsonUint(element)
			}
		}
		return pair[0]*1e9 + pair[1]
	}

	if n := jsonUint(value); n != 0 {
		return n
	}
	word, _ := jsonWord(value)
	if at, ok := wire.ParseTime(string(word)); ok && at.UnixNano() > 0 {
		return uint64(at.UnixNano())
	}

	return 0
}
