package otlp

import (
	"errors"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// ContentType returns the type of a request in a form, and of its answer.
func (f Form) ContentType() string {
	if f == JSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// Answer returns the body of a 200. message says what was not kept of the request, "" if all was, and
// rejected counts the faulty part of it, in JSON as a member such as rejectedSpans. If that is none,
// exporters take the message for a warning.
func Answer(form Form, member string, rejected int, message string) []byte {
	if message == "" {
		if form == JSON {
			return []byte("{}")
		}
		return nil
	}

	if form == JSON {
		b := append([]byte(`{"partialSuccess":{"`), member...)
		// 64 bits are a text in OTLP's JSON.
		b = strconv.AppendInt(append(b, `":"`...), int64(rejected), 10)
		b = jsonscan.AppendString(append(b, `","errorMessage":`...), message)
		return append(b, `}}`...)
	}

	var partial []byte
	partial = protowire.AppendTag(partial, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(rejected))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, message)

	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// Status returns the body of an error in protobuf, a google.rpc.Status.
func Status(e *wire.Error) []byte {
	b := protowire.AppendTag(nil, 1, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(StatusCode(e)))
	b = protowire.AppendTag(b, 2, protowire.BytesType)

	return protowire.AppendString(b, e.Message)
}

// StatusCode returns the code of google.rpc.Status that fits an error.
func StatusCode(e *wire.Error) int {
	switch e.Status() {
	case 401:
		return 16 // unauthenticated
	case 403:
		return 7 // permission denied
	case 404, 405, 501:
		return 12 // unimplemented
	case 409:
		return 9 // failed precondition
	case 429:
		return 8 // resource exhausted
	case 500:
		return 13 // internal
	case 408, 503:
		return 14 // unavailable
	}

	return 3 // invalid argument
}

// Kind is what a request carries.
type Kind string

// The kinds of requests. Their texts are labels of metrics.
const (
	Spans      Kind = "spans"
	LogRecords Kind = "logs"
	Metrics    Kind = "metrics"
)

// errKnown ends a walk that has found the kind.
var errKnown = errors.New("the kind is known")

// KindOf finds out what a request carries, whatever path it came to. In JSON its member shows it, in
// protobuf the times of its items. It returns "" for others, such as metrics in protobuf.
func KindOf(body []byte, form Form) Kind {
	if form == Protobuf {
		return protobufKind(body, 1, 2, 2)
	}

	at := jsonscan.SkipSpace(body, 0)
	if at == len(body) || body[at] != '{' {
		return ""
	}
	for c := jsonscan.Enter(body, at); c.Next(); c.At = jsonscan.CheckValue(body, c.At, jsonLevelsMax) {
		if kind := kinds[string(camelCase(c.Name))]; kind != "" {
			return kind
		}
	}

	return ""
}

// kinds are the kinds of requests in JSON, by the member that only one of each has.
var kinds = map[string]Kind{"resourceSpans": Spans, "resourceLogs": LogRecords, "resourceMetrics": Metrics}

// timed are the kinds whose items have a time in these fields. Metrics have theirs one level deeper.
var timed = map[protowire.Number]Kind{1: LogRecords, 11: LogRecords, 7: Spans, 8: Spans}

// protobufKind is KindOf the items at a path of field numbers below a message.
func protobufKind(message []byte, path ...protowire.Number) (kind Kind) {
	_ = eachField(message, func(f field) error {
		switch {
		case len(path) > 0 && f.isMessage(path[0]):
			kind = protobufKind(f.bytes, path[1:]...)
		case len(path) == 0 && f.kind == protowire.Fixed64Type:
			kind = timed[f.number]
		}
		if kind != "" {
			return errKnown
		}
		return nil
	})

	return kind
}
