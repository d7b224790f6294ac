package calls

import (
	"encoding/json"

	"promptspool/api/wire"
	"promptspool/spool/archive/calls/otel"
)

// readSpan reads a traced call from a stored span. Of a span that is not a call it has
// what went in and came out, so that a search finds it.
func readSpan(object wire.Object) Call {
	span := otel.ReadObject(object)
	if request, ok := tracedRequest(&span); ok {
		return ReadObject(request)
	}

	call := Call{Readable: true}
	if span.Input != "" {
		call.Input = []Message{{Parts: []Part{{Kind: PartText, Text: span.Input}}}}
	}
	if span.Output != "" {
		call.Output = []Message{{Parts: []Part{{Kind: PartText, Text: span.Output}}}}
	}
	if span.Status == "ERROR" {
		call.Failure = &Failure{Type: Clip(span.ErrorType), Message: span.ErrorMessage}
	}

	return call
}

// Traced returns the request that a stored span logs, if it is a model call, and the price
// that its library computed, nil if that is unknown.
func Traced(object wire.Object) (request wire.Object, price json.RawMessage, ok bool) {
	if !otel.IsSpan(object) {
		return nil, nil, false
	}
	span := otel.ReadObject(object)
	request, ok = tracedRequest(&span)

	return request, span.Price, ok
}

// tracedRequest returns the request that logs the same call as a span, if that is a call.
func tracedRequest(span *otel.Span) (wire.Object, bool) {
	if !span.IsCall() {
		return nil, false
	}
	request, err := wire.ParseObject(span.Request)

	return request, err == nil
}
