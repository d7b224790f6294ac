package api

import (
	"promptspool/api/otlp"
	"promptspool/api/wire"
)

// exportTraces takes the spans of an OTLP exporter.
func (a *API) exportTraces(c *call) error {
	x := exported{
		a:       a,
		c:       c,
		signal:  "spans",
		message: "ExportTraceServiceRequest",
	}

	return x.serve("rejectedSpans", func(form otlp.Form) (otlp.Refused, error) {
		return otlp.Traces(c.body, form, func(s otlp.Span) error {
			if s.Plumbing && !a.c.KeepPlumbing {
				x.refused.Dropped++
				return nil
			}
			return x.add(wire.KindSpan, wire.SpanRecordID(s.TraceID, s.SpanID, s.Start), s.Body)
		})
	})
}

// trace returns the spans of a trace.
func (a *API) trace(c *call) error {
	trace, err := a.c.Tracer.Trace(c.context, c.id, c.ident)
	return c.answer(trace, err)
}
