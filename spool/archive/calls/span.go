package calls

import (
	"slices"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive/calls/otel"
)

// readSpan reads a traced call from a stored span. Of a span that is not a call it has
// what went in and came out, so that a search finds it.
func readSpan(object wire.Object) Call {
	span := otel.ReadObject(object)
	if request, ok := TracedRequest(&span); ok {
		return ReadObject(request)
	}

	call := Call{Readable: true}
	if span.Input != "" {
		call.Input = []Message{{Role: "input", Parts: []Part{{Kind: PartText, Text: span.Input}}}}
	}
	if span.Output != "" {
		call.Output = []Message{{Role: "output", Parts: []Part{{Kind: PartText, Text: span.Output}}}}
	}
	if span.Status == "ERROR" {
		call.Failure = &Failure{Type: Clip(span.ErrorType), Message: span.ErrorMessage}
	}

	return call
}

// TracedRequest returns the request that logs the same call as a span, if that is a call.
func TracedRequest(span *otel.Span) (request wire.Object, ok bool) {
	if !span.IsCall() {
		return nil, false
	}

	// It was just written, and need not be checked as what a caller sends.
	return slices.Collect(jsonscan.Members(span.Request)), true
}
