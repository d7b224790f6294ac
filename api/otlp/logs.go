package otlp

import (
	"bytes"
	"encoding/json"
	"errors"

	"promptspool/api/wire/jsonscan"
)

// Log is one decoded log record about a model call.
type Log struct {
	TraceID [16]byte // of the span that it belongs to
	SpanID  [8]byte
	At      uint64          // nanoseconds since 1970, 0 if it has no time
	Body    json.RawMessage // as the package comment shows it; the receiver owns it
}

// Logs decodes a request for /v1/logs and calls take with the events about model calls, in
// their order. It drops other log records. Otherwise it is like Traces.
func Logs(body []byte, form Form, take func(Log) error) (Refused, error) {
	places := map[[24]byte]uint64{}

	d := newDecoding(len(body))
	d.signal = &logs
	d.drop = func(it item, written []byte) bool {
		p := it.(*logRecord)
		if !p.isGenAI(written) {
			return true
		}

		// All messages of a call may have the same time, so their order must be kept. It
		// counts within their span: what is sent along does not matter.
		if p.check() == nil {
			id := [24]byte(append(p.traceID[:16:16], p.spanID...))
			p.index = places[id]
			places[id]++
		}
		return false
	}
	d.take = func(it item, body []byte) error {
		p := it.(*logRecord)
		return take(Log{
			TraceID: [16]byte(p.traceID),
			SpanID:  [8]byte(p.spanID),
			At:      p.time(),
			Body:    body,
		})
	}

	return decode(body, form, d)
}

// logs is the signal of log records.
var logs = signal{
	resources:    "resourceLogs",
	scopes:       []string{"scopeLogs", "instrumentationLibraryLogs"}, // the latter in old versions
	items:        "logRecords",
	fromJSON:     func(object json.RawMessage) item { return jsonLog(object) },
	fromProtobuf: func(message []byte) (item, error) { return protobufLog(message) },
}

// errUnjoined is why an event about a model call cannot be kept.
var errUnjoined = errors.New("an event about a model call must have the traceId and the spanId of the call's span")

// logRecord is what a log record is written from.
type logRecord struct {
	at, observed      uint64
	severity          []byte // JSON
	severityText      text
	event             text
	body              list // a value
	attributes        list
	droppedAttributes uint64
	flags             uint64
	traceID, spanID   []byte
	index             uint64 // its place among the records of its span in the request

	written place // of its attributes
}

// time returns when the event was, or else when it was first seen.
func (p *logRecord) time() uint64 {
	if p.at != 0 {
		return p.at
	}
	return p.observed
}

// genAI is how the names of all events of the GenAI conventions begin.
var genAI = []byte("gen_ai.")

// isGenAI reports whether the log record is an event about a model call. body is what was written
// of it.
func (p *logRecord) isGenAI(body []byte) bool {
	if !p.event.isEmpty() {
		return bytes.HasPrefix(p.event.beginning(len(genAI)), genAI)
	}

	// Older libraries name the event with an attribute.
	for key, value := range written(p.written.of(body)) {
		if string(key) != "event.name" {
			continue
		}
		name, ok := jsonscan.Lookup(value, "stringValue")
		if !ok {
			return false
		}
		text := jsonText(name)
		return bytes.HasPrefix(text.beginning(len(genAI)), genAI)
	}

	return false
}

func (p *logRecord) check() error {
	if len(p.traceID) != 16 || isZero(p.traceID) || len(p.spanID) != 8 || isZero(p.spanID) {
		return errUnjoined
	}
	return nil
}

// write writes the log record behind its scope.
func (p *logRecord) write(o *output) (err error) {
	o.put(`,"log":{`)
	o.nanos("timeUnixNano", p.at)
	o.nanos("observedTimeUnixNano", p.observed)
	o.raw("severityNumber", p.severity)
	o.text("severityText", p.severityText)
	o.text("eventName", p.event)

	if err := o.value("body", p.body); err != nil {
		return err
	}
	if p.written, err = o.list("attributes", p.attributes); err != nil {
		return err
	}
	o.number("droppedAttributesCount", p.droppedAttributes)
	o.number("flags", p.flags)
	o.id("traceId", p.traceID)
	o.id("spanId", p.spanID)
	o.end()

	return nil
}

// close writes the log record's place and closes its body.
func (p *logRecord) close(o *output) {
	o.put(`,"index":`)
	o.digits(p.index)
	o.end()
}

// severities are the names of severity numbers that some senders write.
var severities = func() []string {
	names := []string{"UNSPECIFIED"}
	for _, name := range []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"} {
		names = append(names, name, name+"2", name+"3", name+"4")
	}
	return names
}()

// jsonLog reads a LogRecord.
func jsonLog(object json.RawMessage) *logRecord {
	var p logRecord
	_ = eachMember(object, func(name, value []byte) error {
		switch string(name) {
		case "timeUnixNano":
			p.at = jsonUint(value)
		case "observedTimeUnixNano":
			p.observed = jsonUint(value)
		case "severityNumber":
			p.severity = jsonEnum(value, "SEVERITY_NUMBER_", severities)
		case "severityText":
			p.severityText = jsonText(value)
		case "eventName":
			p.event = jsonText(value)
		case "body":
			p.body = list{value, jsonBody}
		case "attributes":
			p.attributes = list{value, jsonAttributes}
		case "droppedAttributesCount":
			p.droppedAttributes = jsonUint(value)
		case "flags":
			p.flags = jsonUint(value)
		case "traceId":
			p.traceID = jsonID(value, 16)
		case "spanId":
			p.spanID = jsonID(value, 8)
		}
		return nil
	})

	return &p
}

// protobufLog reads a LogRecord. Its errors concern this record only.
func protobufLog(message []byte) (*logRecord, error) {
	var p logRecord
	err := eachField(message, func(f field) error {
		switch {
		case f.number == 1:
			p.at = f.n
		case f.number == 2:
			p.severity = enum(f.n)
		case f.isMessage(3):
			p.severityText = text{b: f.bytes}
		case f.isMessage(5):
			p.body = list{message, protobufBody}
		case f.isMessage(6):
			p.attributes = list{message, logAttributes}
		case f.number == 7:
			p.droppedAttributes = f.n
		case f.number == 8:
			p.flags = f.n
		case f.isMessage(9):
			p.traceID = f.bytes
		case f.isMessage(10):
			p.spanID = f.bytes
		case f.number == 11:
			p.observed = f.n
		case f.isMessage(12):
			p.event = text{b: f.bytes}
		}
		return nil
	})

	return &p, err
}

// protobufBody writes the body of a LogRecord. Without one it has none; an empty one is a value
// that is not set. It may come in several parts.
func protobufBody(o *output, message []byte, level int) error {
	var value field
	err := eachField(message, func(f field) error {
		if !f.isMessage(5) {
			return nil
		}
		return readValue(&value, f.bytes)
	})
	if err != nil {
		return err
	}

	return writeValue(o, &value, level)
}
