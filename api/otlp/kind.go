package otlp

import (
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
