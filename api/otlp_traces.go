package api

import (
	"fmt"

	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// exportTraces takes the spans of an OTLP exporter.
func (a *API) exportTraces(c *call) error {
	closing, err := c.boolArg("close_after", false)
	if err != nil {
		return err
	}
	x := exported{
		a:       a,
		c:       c,
		signal:  "spans",
		message: "ExportTraceServiceRequest",
		closing: closing,
	}

	return x.serve("rejectedSpans", func(form otlp.Form) (otlp.Refused, error) {
		return otlp.Traces(c.body, form, func(s otlp.Span) error {
			_, _, err := x.addSpan(s)
			return err
		})
	})
}

// addSpan gathers a span, unless it is dropped or its trace is closed. Then there are no ids.
func (x *exported) addSpan(s otlp.Span) (recordID, eventID string, err error) {
	closed, err := x.isClosed(s.TraceID)
	switch {
	case err != nil:
		return "", "", err
	case s.Plumbing && !x.a.c.KeepPlumbing:
		x.refused.Dropped++
		return "", "", nil
	case closed:
		x.refuse(fmt.Sprintf("the trace %x is closed", s.TraceID))
		return "", "", nil
	}

	recordID = wire.SpanRecordID(s.TraceID, s.SpanID, s.Start)
	eventID, err = x.add(wire.KindSpan, recordID, s.Body)

	return recordID, eventID, err
}

// trace returns the spans of a trace.
func (a *API) trace(c *call) error {
	trace, err := a.c.Tracer.Trace(c.context, c.id, c.ident)
	return c.answer(trace, err)
}
