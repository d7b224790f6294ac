package otlp

import (
	"bytes"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"

	"promptspool/api/wire/jsonscan"
)

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
func KindOf(body []byte, form Form) (kind Kind) {
	if form == Protobuf {
		_ = eachAt(body, []protowire.Number{1, 2, 2}, func(item []byte) error {
			return eachField(item, func(f field) error {
				if f.kind != protowire.Fixed64Type {
					return nil
				}
				// Of a data point of metrics they are one level deeper.
				switch f.number {
				case 1, 11:
					kind = LogRecords
				case 7, 8:
					kind = Spans
				default:
					return nil
				}
				return errKnown
			})
		})
		return kind
	}

	at := jsonscan.SkipSpace(body, 0)
	if at == len(body) || body[at] != '{' {
		return ""
	}
	for c := jsonscan.Enter(body, at); c.Next(); c.At = jsonscan.CheckValue(body, c.At, jsonLevelsMax) {
		kind := kinds[string(camelCase(c.Name))]
		if kind != "" && !bytes.HasPrefix(body[c.At:], []byte("null")) {
			return kind
		}
	}

	return ""
}

// kinds are the kinds of requests in JSON, by the member that only one of each has.
var kinds = map[string]Kind{"resourceSpans": Spans, "resourceLogs": LogRecords, "resourceMetrics": Metrics}

// eachAt calls fn with the messages at a path of field numbers below a message.
func eachAt(message []byte, path []protowire.Number, fn func(message []byte) error) error {
	if len(path) == 0 {
		return fn(message)
	}
	return eachField(message, func(f field) error {
		if !f.isMessage(path[0]) {
			return nil
		}
		return eachAt(f.bytes, path[1:], fn)
	})
}
