package api

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/otlp"
	"promptspool/api/wire"
	"promptspool/api/wire/secrets"
)

// An export is recorded in batches of about this many bytes, and of at most
// wire.BatchEventsMax. So most requests are one batch with one fsync, and one of many
// repetitions of a large resource takes bounded memory.
const (
	exportedBytes      = 512 << 10
	exportedBytesLarge = 128 << 10 // of a larger request: so a sidecar takes 16 of 2 MiB together
	exportedBytesMin   = 32 << 10  // for which there nearly always is space
)

// exported collects the events of one request of an exporter.
type exported struct {
	a       *API
	c       *exchange
	signal  string // the metrics' label
	message string // of OTLP, that the request must be

	step    int // bytes of a batch, about
	events  []wire.Event
	bytes   int
	taken   bool                              // some event was
	refused otlp.Refused                      // by the recorder, or because their trace is closed
	invalid func(e wire.Event, reason string) // called for what the recorder refuses; may be nil

	closing bool              // the traces of the request are closed after it
	traces  map[[16]byte]bool // of the request, and whether they were closed before
}

// claim claims the memory for the events that are collected at the same time.
func (x *exported) claim() (release func(), err error) {
	// More than an eighth of the largest body might never fit beside one. Beside many large bodies
	// smaller batches do as well: an exporter that is told to wait may drop what it has.
	most := int64(exportedBytes)
	if len(x.c.body) > exportedBytes {
		most = exportedBytesLarge
	}
	step := min(16*int64(len(x.c.body)), most, x.a.c.BodyBytesMax/8)
	release, err = x.a.intake.ClaimBeside(x.c.id.KeyID, step)
	for err != nil && step > exportedBytesMin {
		step /= 4
		release, err = x.a.intake.ClaimBeside(x.c.id.KeyID, step)
	}
	x.step = int(step)

	return release, err
}

// serve has decode read the request, which adds events, and answers when all of them are durable.
// member counts in JSON what was refused.
func (x *exported) serve(member string, decode func(form otlp.Form) (otlp.Refused, error)) error {
	form, err := otlpForm(x.c.ctx, x.c.body)
	if err != nil {
		return err
	}
	release, err := x.claim()
	if err != nil {
		return err
	}
	defer release()

	refused, err := decode(form)
	if err == nil {
		err = x.end()
	}
	if errors.Is(err, otlp.ErrMalformed) {
		return wire.Errorf(wire.CodeBadJSON, "%s. Send an %s.", sentence(err), x.message)
	}
	if err != nil {
		return err
	}

	x.refused.Dropped += refused.Dropped
	x.refused.Spans += refused.Spans
	if refused.Reason != "" {
		x.refused.Reason = refused.Reason
	}
	x.count()
	x.c.answerOTLP(form, x.refused.Answer(form, member))

	return nil
}

// count counts what was not kept.
func (x *exported) count() {
	x.a.c.Metrics.OTLPRefused.WithLabelValues(x.signal).Add(float64(x.refused.Spans))
	x.a.c.Metrics.OTLPDropped.WithLabelValues(x.signal).Add(float64(x.refused.Dropped))
}

// sentence returns an error's text with a capital.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// add makes an event, queues it, and returns its id.
func (x *exported) add(kind wire.Kind, recordID string, body []byte) (eventID string, err error) {
	e, err := x.event(kind, recordID, body)
	if err != nil {
		return "", err
	}

	return e.ID, x.queue(e)
}

// event makes an event whose id is derived from its record and its body, so that what is sent
// again is the same event.
func (x *exported) event(kind wire.Kind, recordID string, body []byte) (wire.Event, error) {
	if object, err := wire.ParseObject(body); err == nil {
		body = secrets.Strip(body, object)
	}

	e := x.a.event(kind, recordID, body)
	var err error
	e.ID, err = wire.SpanEventID(recordID, body)

	return e, err
}

// queue keeps an event until there are enough for a batch.
func (x *exported) queue(e wire.Event) error {
	x.taken = true
	x.events = append(x.events, e)
	if x.bytes += len(e.Body); x.bytes < x.step && len(x.events) < wire.BatchEventsMax {
		return nil
	}

	return x.record()
}

// end records what is left. Its error is a conflict if all spans were of closed traces.
func (x *exported) end() error {
	if err := x.closeTraces(); err != nil {
		return err
	}
	return x.record()
}

// record makes the collected events durable.
func (x *exported) record() error {
	if len(x.events) == 0 {
		return nil
	}

	// The recorder owns their bodies from here on.
	results, err := x.a.c.Recorder.Record(x.c.context, x.c.id, x.events)
	if err != nil {
		return err
	}
	x.a.count(results)

	// If some of it can be taken later, the exporter sends all of it again, which does no
	// harm.
	for i, r := range results {
		switch r.Code {
		case wire.ResultLater:
			return wire.Unavailable(time.Second, "%s", r.Reason)
		case wire.ResultInvalid:
			x.refuse(r.Reason)
			if x.invalid != nil {
				x.invalid(x.events[i], r.Reason)
			}
		}
	}
	x.events, x.bytes = nil, 0

	return nil
}

// refuse counts something that is not kept.
func (x *exported) refuse(reason string) {
	if x.refused.Spans++; x.refused.Reason == "" {
		x.refused.Reason = reason
	}
}

// answerOTLP answers 200 in the encoding of the request.
func (c *exchange) answerOTLP(form otlp.Form, body []byte) {
	c.ctx.SetStatusCode(200)
	c.ctx.SetContentType(form.ContentType())
	c.ctx.SetBody(body)
}

// otlpForm returns the encoding of a request, by its Content-Type or, without one, by its body.
func otlpForm(ctx *fasthttp.RequestCtx, body []byte) (otlp.Form, error) {
	kind, _, _ := bytes.Cut(ctx.Request.Header.ContentType(), []byte(";"))
	switch strings.ToLower(strings.TrimSpace(string(kind))) {
	case "application/json":
		return otlp.JSON, nil
	case "application/x-protobuf", "application/protobuf":
		return otlp.Protobuf, nil
	case "", "application/octet-stream":
		// A line feed is how protobuf begins.
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r"), []byte("{")) {
			return otlp.JSON, nil
		}
		return otlp.Protobuf, nil
	}

	return otlp.JSON, wire.Errorf(wire.CodeEncoding, "Content-Type %.50q is not OTLP. Send application/x-protobuf "+
		"or application/json: OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf or http/json.", kind)
}

// errOnlyOTLP is the 404 for any other path, on a listener for exporters only.
func errOnlyOTLP(ctx *fasthttp.RequestCtx) error {
	return wire.Errorf(wire.CodeNotFound, "There is no route %.200s here: this listener (--otlp-listen) takes "+
		"POST /v1/traces, /v1/logs and /v1/metrics only.", ctx.URI().PathOriginal())
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

// exportTraces takes the spans of an OTLP exporter.
func (a *API) exportTraces(c *exchange) error {
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
		return otlp.Traces(c.body, form, x.takeSpan)
	})
}

func (x *exported) takeSpan(s otlp.Span) error {
	_, _, err := x.addSpan(s)
	return err
}

// addSpan collects a span, unless it is dropped or its trace is closed. Then there are no ids.
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

// exportLogs takes the log records of an OTLP exporter that are about model calls, or of a coding
// agent. An app sends others with them, and its exporter would warn of each request if it were told
// what becomes of those.
func (a *API) exportLogs(c *exchange) error {
	x := exported{
		a:       a,
		c:       c,
		signal:  "logs",
		message: "ExportLogsServiceRequest",
	}

	return x.serve("rejectedLogRecords", func(form otlp.Form) (otlp.Refused, error) {
		return otlp.Logs(c.body, form, func(l otlp.Log) error {
			_, err := x.add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
			return err
		}, x.takeSpan)
	})
}

// exportMetrics discards the metrics of an OTLP exporter, which would log errors after a 404.
func (a *API) exportMetrics(c *exchange) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}
	a.c.Metrics.OTLPRefused.WithLabelValues("metrics").Inc()
	c.answerOTLP(form, otlp.Refused{}.Answer(form, ""))

	return nil
}
