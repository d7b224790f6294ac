package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
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
	a    *API
	c    *exchange
	kind otlp.Kind

	step     int // bytes of a batch, about
	events   []wire.Event
	bytes    int
	taken    bool              // some event was
	refused  otlp.Refused      // by the recorder, or because their trace is closed
	rejected map[string]string // the recorder's reasons, by event id; nil notes none

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

// kinds has what OTLP calls a request of each kind, the member of the answer that counts what is
// rejected, and what is dropped of it, and why.
var kinds = map[otlp.Kind]struct{ request, rejected, dropped, why string }{
	otlp.Spans: {"ExportTraceServiceRequest", "rejectedSpans", "span",
		"HTTP, database or similar instrumentation; --otlp-keep all keeps them"},
	otlp.LogRecords: {"ExportLogsServiceRequest", "rejectedLogRecords", "log record", "not about model calls"},
	otlp.Metrics: {"ExportMetricsServiceRequest", "rejectedDataPoints", "metrics export",
		"only spans and log records are kept; OTEL_METRICS_EXPORTER=none stops them"},
}

// exportTraces, exportLogs and exportMetrics take what an OTLP exporter sends to their paths.
func (a *API) exportTraces(c *exchange) error  { return a.export(c, otlp.Spans) }
func (a *API) exportLogs(c *exchange) error    { return a.export(c, otlp.LogRecords) }
func (a *API) exportMetrics(c *exchange) error { return a.export(c, otlp.Metrics) }

// export takes a request to the path of a kind, and answers when what is kept of it is durable. The
// answer names the rest.
func (a *API) export(c *exchange, asked otlp.Kind) error {
	form, err := otlpForm(c.ctx, c.body)
	if err != nil {
		return err
	}
	x := exported{a: a, c: c, kind: asked}
	if asked == otlp.Spans {
		q, err := wire.DecodeQuery[wire.CloseQuery](c.query())
		if err != nil {
			return err
		}
		x.closing = q.CloseAfter
	}
	release, err := x.claim()
	if err != nil {
		return err
	}
	defer release()

	refused, err := x.decode(form)
	if err == nil && !x.taken {
		// Settings mix up the paths: it may be of another kind.
		if kind := otlp.KindOf(c.body, form); kind != "" && kind != asked {
			x = exported{a: a, c: c, kind: kind, step: x.step}
			refused, err = x.decode(form)
		}
	}
	if err == nil {
		err = x.end()
	}
	if errors.Is(err, otlp.ErrMalformed) {
		return wire.Errorf(wire.CodeBadJSON, "%s. Send an %s.", sentence(err), kinds[asked].request)
	}
	if err != nil {
		return err
	}

	x.refused.Dropped += refused.Dropped
	x.refused.Spans += refused.Spans
	if refused.Reason != "" {
		x.refused.Reason = refused.Reason
	}
	c.ctx.SetStatusCode(200)
	c.ctx.SetContentType(form.ContentType())
	c.ctx.SetBody(otlp.Answer(form, kinds[asked].rejected, x.refused.Spans, x.count()))

	return nil
}

// decode reads the request and collects its events. It returns what cannot be kept.
func (x *exported) decode(form otlp.Form) (otlp.Refused, error) {
	switch x.kind {
	case otlp.Spans:
		return otlp.Traces(x.c.context, x.c.body, form, x.takeSpan)
	case otlp.LogRecords:
		return otlp.Logs(x.c.context, x.c.body, form, func(l otlp.Log) error {
			_, err := x.add(wire.KindLog, wire.LogRecordID(l.TraceID, l.SpanID, l.At), l.Body)
			return err
		}, x.takeSpan)
	default: // an exporter of metrics would log errors after a 404
		return otlp.Refused{Dropped: 1}, nil
	}
}

// count counts what was not kept of an export, and says what it was; "" if all was kept.
func (x *exported) count() string {
	var parts []string
	var drops []wire.Drop
	if n := x.refused.Spans; n > 0 {
		parts = append(parts, x.refused.Reason)
		drops = append(drops, wire.Drop{Count: int64(n), What: "faulty item", Why: "the exporter was told why"})
		x.a.c.Metrics.OTLPRefused.WithLabelValues(string(x.kind)).Add(float64(n))
	}
	if n := x.refused.Dropped; n > 0 {
		kind := kinds[x.kind]
		what := english.PluralWord(n, kind.dropped, "")
		parts = append(parts, humanize.Comma(int64(n))+" "+what+" dropped: "+kind.why)
		drops = append(drops, wire.Drop{Count: int64(n), What: kind.dropped, Why: kind.why})
		x.a.c.Metrics.OTLPDropped.WithLabelValues(string(x.kind)).Add(float64(n))
	}
	if len(parts) == 0 {
		return ""
	}
	message := strings.Join(parts, "; ")

	if x.a.c.Drops.add(x.c.id.Account, drops...) {
		x.a.c.Logger.Info("Not all that an OpenTelemetry exporter sends is kept.", "why", message,
			"key", x.c.id.KeyID, "from", x.c.ctx.RemoteIP(), "user_agent", string(x.c.ctx.UserAgent()))
	}

	return message
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
			if x.rejected != nil {
				x.rejected[x.events[i].ID] = r.Reason
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

// exporterError returns an error as exporters are told it.
func exporterError(err error) *wire.Error {
	e := *wire.AsError(err)
	e.RetryAfter = min(e.RetryAfter, otlpRetry)
	return &e
}

// writeOTLPError answers an exporter with an error in the encoding of its request.
func (a *API) writeOTLPError(ctx *fasthttp.RequestCtx, err error) {
	e := exporterError(err)
	writeError(ctx, a.c.Logger, e)

	if form, err := otlpForm(ctx, nil); err == nil && form == otlp.Protobuf {
		ctx.SetContentType(form.ContentType())
		ctx.SetBody(otlp.Status(e))
		return
	}

	// Our error, with the number beside it that exporters look for.
	body := e.Body()
	body.Code = otlp.StatusCode(e)
	edge.WriteJSON(ctx, e.Status(), body)
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

// DropCounter counts what OpenTelemetry exporters sent today and was not kept. Its zero value is
// ready. Safe for concurrent use.
type DropCounter struct {
	mu     sync.Mutex
	day    int64                  // of the counts: since 1970, in UTC
	counts map[string][]wire.Drop // by account; "" is all of them
}

// Of returns the counts of an account, or of all accounts together if it is "".
func (d *DropCounter) Of(account string) []wire.Drop {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beginDayLocked()

	return slices.Clone(d.counts[account])
}

// add counts drops, and reports whether one of them is the first of its kind today, which should be
// logged: each request of an account may have some.
func (d *DropCounter) add(account string, drops ...wire.Drop) (isNews bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beginDayLocked()

	for _, drop := range drops {
		for _, of := range slices.Compact([]string{account, ""}) {
			all := d.counts[of]
			i := slices.IndexFunc(all, func(known wire.Drop) bool { return known.What == drop.What })
			if i < 0 {
				d.counts[of], isNews = append(all, drop), true
			} else {
				all[i].Count += drop.Count
			}
		}
	}

	return isNews
}

// beginDayLocked starts at zero when another day has begun.
func (d *DropCounter) beginDayLocked() {
	if today := time.Now().Unix() / (24 * 60 * 60); today != d.day {
		d.day = today
		d.counts = map[string][]wire.Drop{}
	}
}
