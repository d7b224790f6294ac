package calls

import (
	"promptspool/api/wire"
	"promptspool/spool/archive/calls/otel"
)

// readSpan reads a traced call from a stored span. Of a span that is not a call it has
// what went in and came out, so that a search finds it.
func readSpan(object wire.Object) Call {
	span := otel.ReadObject(object)
	if span.IsCall() {
		return ReadObject(span.Call())
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
