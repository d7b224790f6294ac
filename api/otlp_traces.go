package api

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
)

// Spans are recorded in batches of about this many bytes, and of at most wire.BatchEventsMax. So
// nearly every request is one batch with one fsync, and one of many repetitions of a large
// resource takes bounded memory.
const spansBytes = 2 << 20

// exportTraces takes the spans of an OTLP exporter, and answers when all of them are durable.
func (a *API) exportTraces(c *call) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}

	// More than an eighth of the largest body might never fit beside one.
	release, err := a.intake.ClaimBeside(c.id.KeyID, min(16*int64(len(c.body)), spansBytes, a.c.BodyBytesMax/8))
	if err != nil {
		return err
	}
	defer release()

	s := spans{a: a, c: c}
	refused, err := otlp.Traces(c.body, form, s.add)
	if err == nil {
		err = s.record()
	}
	if errors.Is(err, otlp.ErrMalformed) {
		return wire.Errorf(wire.CodeBadJSON, "%s. Send an ExportTraceServiceRequest.", sentence(err))
	}
	if err != nil {
		return err
	}

	refused.Spans += s.refused.Spans
	if refused.Reason == "" {
		refused.Reason = s.refused.Reason
	}
	a.c.Metrics.OTLPRefused.WithLabelValues("spans").Add(float64(refused.Spans))
	c.answerOTLP(form, refused.Answer(form, "rejectedSpans"))

	return nil
}

// sentence returns an error's text with a capital.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// spans gathers the spans of one call.
type spans struct {
	a       *API
	c       *call
	events  []wire.Event
	bytes   int
	refused otlp.Refused // by the recorder
}

// add makes an event of a span.
func (s *spans) add(span otlp.Span) error {
	body := span.Body
	if object, err := wire.ParseObject(body); err == nil {
		body = secrets.Strip(body, object)
	}

	// Both ids are derived, so a span that is sent again is the same event.
	recordID := wire.SpanRecordID(span.TraceID, span.SpanID, span.Start)
	e := s.a.event(wire.KindSpan, recordID, body)
	var err error
	if e.ID, err = wire.SpanEventID(recordID, body); err != nil {
		return err
	}

	s.events = append(s.events, e)
	if s.bytes += len(body); s.bytes < spansBytes && len(s.events) < wire.BatchEventsMax {
		return nil
	}

	return s.record()
}

// record makes the gathered spans durable.
func (s *spans) record() error {
	if len(s.events) == 0 {
		return nil
	}

	results, err := s.a.c.Recorder.Record(s.c.context, s.c.id, s.events)
	if err != nil {
		return err
	}
	s.a.count(results)
	s.events, s.bytes = nil, 0

	// What can be taken later makes the exporter send all of it again, which does no harm.
	for _, r := range results {
		switch r.Code {
		case wire.ResultLater:
			return wire.Unavailable(time.Second, "%s", r.Reason)
		case wire.ResultInvalid:
			if s.refused.Spans++; s.refused.Reason == "" {
				s.refused.Reason = r.Reason
			}
		}
	}

	return nil
}

// exportLogs refuses the log records of an OTLP exporter one by one: it must not send them again,
// and must not take them for stored either.
func (a *API) exportLogs(c *call) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}
	n, err := otlp.CountLogs(c.body, form)
	if err != nil {
		return wire.Errorf(wire.CodeBadJSON, "%s. Send an ExportLogsServiceRequest.", sentence(err))
	}

	a.c.Metrics.OTLPRefused.WithLabelValues("logs").Add(float64(n))
	refused := otlp.Refused{Spans: n, Reason: "promptspool keeps spans; it does not keep log records. " +
		"Have the messages recorded on spans, for example with " +
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY"}
	c.answerOTLP(form, refused.Answer(form, "rejectedLogRecords"))

	return nil
}

// exportMetrics discards the metrics of an OTLP exporter, which would log errors after a 404.
func (a *API) exportMetrics(c *call) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}
	a.c.Metrics.OTLPRefused.WithLabelValues("metrics").Inc()
	c.answerOTLP(form, otlp.Refused{}.Answer(form, ""))

	return nil
}

// answerOTLP answers 200 in the encoding of the request.
func (c *call) answerOTLP(form otlp.Form, body []byte) {
	c.ctx.SetStatusCode(200)
	c.ctx.SetContentType(form.ContentType())
	c.ctx.SetBody(body)
}

// otlpForm returns the encoding of a call, by its Content-Type or, without one, by its body.
func otlpForm(ctx *fasthttp.RequestCtx, body []byte) (otlp.Form, error) {
	kind, _, _ := bytes.Cut(ctx.Request.Header.ContentType(), []byte(";"))
	switch strings.ToLower(strings.TrimSpace(string(kind))) {
	case "application/json":
		return otlp.JSON, nil
	case "application/x-protobuf", "application/protobuf":
		return otlp.Protobuf, nil
	case "", "application/octet-stream":
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return otlp.JSON, nil
		}
		return otlp.Protobuf, nil
	}

	return otlp.JSON, wire.Errorf(wire.CodeEncoding, "Content-Type %.50q is not OTLP. Send application/x-protobuf "+
		"or application/json: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf or http/json.", kind)
}

// otlpRetry is the longest Retry-After for an exporter. After a longer one it would drop its spans
// instead of sending them again.
const otlpRetry = 2 * time.Second

// writeOTLPError answers an exporter with an error in the encoding of its request.
func (a *API) writeOTLPError(ctx *fasthttp.RequestCtx, err error) {
	e := *wire.AsError(err)
	e.RetryAfter = min(e.RetryAfter, otlpRetry)
	writeError(ctx, a.c.Logger, &e)

	if form, err := otlpForm(ctx, nil); err == nil && form == otlp.Protobuf {
		ctx.SetContentType(form.ContentType())
		ctx.SetBody(otlp.Status(&e))
		return
	}

	// Our error, with the number beside it that exporters look for.
	body := e.Body()
	body.Code = otlp.StatusCode(&e)
	edge.WriteJSON(ctx, e.Status(), body)
}

// trace returns the spans of a trace.
func (a *API) trace(c *call) error {
	trace, err := a.c.Tracer.Trace(c.context, c.id, c.ident)
	return c.answer(trace, err)
}
