package calls

import (
	"context"
	"slices"

	"promptspool/api/calls/otel"
	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
)

// readSpan reads a traced call from a stored span. Of a span that is not a call it has
// what went in and came out, so that a search finds it.
func readSpan(ctx context.Context, object wire.Object) Call {
	span := otel.ReadObject(object)
	if span.IsCall() {
		return ReadTraced(ctx, &span)
	}

	call := Call{Readable: true, Status: span.Status}
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

// ReadTraced reads a traced call from its span. The result is that of Read for the span's
// Request, but for its status. It ends with ctx, as ReadObject does.
func ReadTraced(ctx context.Context, span *otel.Span) Call {
	call := readTraced(ctx, span)
	// A span that ended well may have a response that holds an error.
	if call.Status == "SUCCESS" && call.Failure != nil {
		call.Status = "ERROR"
	}

	return call
}

func readTraced(ctx context.Context, span *otel.Span) Call {
	object, in, out := span.Call()
	call := readCall(membersOf(ctx, object), out)
	if len(in) == 0 {
		return call
	}

	// Arguments may say something too, which has its place among the messages.
	if len(call.Input) > 0 {
		return ReadObject(ctx, slices.Collect(jsonscan.Members(span.Request())))
	}
	for i := range in {
		if m := readTurn(&in[i], "user"); !m.empty() {
			call.Input = append(call.Input, m)
		}
	}

	return call
}

// readAnswers reads the choices of a traced call.
func (c *Call) readAnswers(answers []otel.Turn) {
	c.Readable = true
	for i := range answers {
		c.answer(readTurn(&answers[i], "assistant"))
		c.finish(answers[i].Finish)
	}
}

// readTurn reads a message of a traced call.
func readTurn(t *otel.Turn, usual string) Message {
	if t.Text == nil {
		return readMessage(nodeOf(t.JSON), usual)
	}

	m := Message{Role: usual, Name: Clip(t.Name), ToolCallID: t.ToolCallID}
	if t.Role != "" {
		m.Role = role(t.Role)
	}
	m.add(PartText, nodeOf(t.Text).text())
	m.add(PartRefusal, t.Refusal)

	return m
}
