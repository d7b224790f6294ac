package api_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"promptspool/api"
	"promptspool/api/otlp/otlptest"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// oneSpan is a request with a span.
const oneSpan = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c",` +
	`"spanId":"eee19b7ec3c1b174","name":"chat m","startTimeUnixNano":"1700000000000000000"}]}]}]}`

// export posts a request as an exporter does, and returns the answer.
func (s *scene) export(path, body string, header ...string) (status int, kind, answer string, h http.Header) {
	s.t.Helper()
	res, text, err := s.read("POST", path, body, append([]string{"Content-Type", "application/json"}, header...)...)
	if err != nil {
		s.t.Fatal(err)
	}

	return res.StatusCode, res.Header.Get("Content-Type"), text, res.Header
}

// spanRequest is oneSpan in protobuf.
func spanRequest(t *testing.T) string {
	t.Helper()
	span := "0a105b8efff798038103d269b633813fc60c" + "1208eee19b7ec3c1b174" + "2a0663686174206d" +
		"3900002a36fe9c9717"
	nest := func(tag string, inner string) string {
		return tag + hex.EncodeToString([]byte{byte(len(inner) / 2)}) + inner
	}
	b, err := hex.DecodeString(nest("0a", nest("12", nest("12", span))))
	if err != nil {
		t.Fatal(err)
	}

	return string(b)
}

func TestSpansAreRecordedOnceHoweverTheyCome(t *testing.T) {
	s := start(t, nil)
	var deflated bytes.Buffer
	deflate := zlib.NewWriter(&deflated)
	_, _ = io.WriteString(deflate, oneSpan)
	_ = deflate.Close()
	var raw bytes.Buffer
	bare, _ := flate.NewWriter(&raw, flate.BestSpeed)
	_, _ = io.WriteString(bare, oneSpan)
	_ = bare.Close()
	basic := base64.StdEncoding.EncodeToString([]byte("public:app"))
	const protobuf = "application/x-protobuf"

	for _, c := range []struct {
		path, body string
		header     []string
	}{
		{"/v1/traces", oneSpan, []string{"X-API-KEY", "app"}},
		{"/v1/traces?close_after=false", oneSpan, []string{"Authorization", "Bearer app"}},
		{"/v1/traces/v1/traces", oneSpan, []string{"Authorization", "Basic " + basic}},
		{"/api/public/otel/v1/traces", oneSpan, []string{"Authorization", "bearer  app"}},
		{"/otel/v1/traces", oneSpan, []string{"X-API-KEY", "app", "Authorization", "Bearer of-a-proxy"}},
		{"/", spanRequest(t), []string{"X-API-KEY", "app", "Content-Type", protobuf}},
		{"/", oneSpan, []string{"X-API-KEY", "app", "Content-Type", "application/json; charset=utf-8"}},
		{"/v1/traces", gzipOf(oneSpan), []string{"X-API-KEY", "app", "Content-Encoding", "gzip"}},
		{"/v1/traces", deflated.String(), []string{"X-API-KEY", "app", "Content-Encoding", "deflate"}},
		{"/v1/traces", raw.String(), []string{"X-API-KEY", "app", "Content-Encoding", "deflate"}},
		{"/v1/traces", zstdOf(t, []byte(oneSpan)), []string{"X-API-KEY", "app", "Content-Encoding", "zstd"}},
	} {
		status, kind, answer, _ := s.export(c.path, c.body, c.header...)
		wantKind, want := "application/json", "{}"
		if c.body == spanRequest(t) {
			wantKind, want = protobuf, ""
		}
		if status != 200 || kind != wantKind || answer != want {
			t.Errorf("%s %v: %d %s %q", c.path, c.header, status, kind, answer)
		}
	}

	if len(s.recorder.events) != 11 {
		t.Fatalf("%d events were recorded, want 11", len(s.recorder.events))
	}
	first := s.recorder.events[0]
	for _, e := range s.recorder.events {
		if e.Kind != wire.KindSpan || e.ID != first.ID || e.RequestID != first.RequestID ||
			!bytes.Equal(e.Body, first.Body) {
			t.Errorf("another event: %+v with %s", e, e.Body)
		}
	}
}

func TestExportersAreAnsweredInTheirEncoding(t *testing.T) {
	full := false
	s := start(t, func(c *api.Config) {
		c.Recorder.(*recorder).do = func(events []wire.Event) ([]wire.Result, error) {
			if full {
				return nil, wire.Unavailable(1e11, "The spool is full.")
			}
			return make([]wire.Result, len(events)), nil
		}
	})

	const protobuf = "application/x-protobuf"
	for _, c := range []struct {
		path, body, kind string
		status           int
		want             string
	}{
		{"/v1/traces", "{", "application/json", 400, `"code":3`},
		{"/v1/traces", "\x0a\x05", protobuf, 400, "\x08\x03\x12"},
		{"/v1/traces", oneSpan, "text/plain", 415, `"code":12`},
		{"/v1/traces", "", protobuf, 200, ""},
		{"/v1/traces", `{"resourceSpans":[]}`, "application/json", 200, "{}"},
		{"/v1/logs", "[]", "application/json", 400, `"code":3`},
		{"/v1/logs", "\x0a\x05", protobuf, 400, "\x08\x03\x12"},
		{"/v1/logs", oneSpan, "text/plain", 415, `"code":12`},
		{"/v1/logs", `{"resourceLogs":[]}`, "application/json", 200, "{}"},
		{"/v1/metrics", `{"resourceMetrics":[]}`, "application/json", 200, `"rejectedDataPoints":"0"`},
		{"/v1/metrics", "", protobuf, 200, "1 metrics export dropped"},
	} {
		status, kind, answer, _ := s.export(c.path, c.body, "X-API-KEY", "app", "Content-Type", c.kind)
		isProtobuf := kind == protobuf
		if status != c.status || isProtobuf != (c.kind == protobuf) || !strings.Contains(answer, c.want) {
			t.Errorf("%s %q: %d %s %q", c.path, c.body, status, kind, answer)
		}
	}

	// After a longer time an exporter would have dropped its spans.
	full = true
	status, _, answer, header := s.export("/v1/traces", oneSpan, "X-API-KEY", "app")
	if status != 503 || header.Get("Retry-After") != "2" || !strings.Contains(answer, `"code":14`) {
		t.Errorf("a full spool: %d %v %s", status, header, answer)
	}
	status, kind, answer, _ := s.export("/v1/traces", spanRequest(t), "X-API-KEY", "app", "Content-Type", protobuf)
	if status != 503 || kind != protobuf || !strings.HasPrefix(answer, "\x08\x0e\x12") { // a google.rpc.Status
		t.Errorf("a full spool, in protobuf: %d %s %q", status, kind, answer)
	}
	status, _, answer, _ = s.export("/v1/traces", oneSpan)
	if status != 401 || !strings.Contains(answer, `"code":16`) {
		t.Errorf("without a key: %d %s", status, answer)
	}
}

func TestSecretsInSpansAreMasked(t *testing.T) {
	payloads := otlptest.Payloads(t, "otlp/testdata")
	i := slices.IndexFunc(payloads, func(p otlptest.Payload) bool { return p.Name == "promptlayer-python-wrapped" })
	s := start(t, nil)
	s.export("/v1/traces", string(payloads[i].Body), "X-API-KEY", "app", "Content-Type", "application/x-protobuf")

	attributes := `[{"key":"llm.api_key","value":{"stringValue":"plain-one"}},
		{"value":{"stringValue":"plain-two"},"key":"http.request.header.cookie"},
		{"key":"x","value":{"kvlistValue":{"values":[{"key":"password","value":{"stringValue":"plain-three"}}]}}},
		{"key":"headers","value":{"stringValue":"{\"Authorization\":\"Basic plain-four\"}"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":"25"}}]`
	body := strings.Replace(oneSpan, `"name"`, `"attributes":`+attributes+`,"name"`, 1)
	s.export("/v1/traces", body, "X-API-KEY", "app")

	if len(s.recorder.events) != 3 {
		t.Fatalf("%d events", len(s.recorder.events))
	}
	for _, e := range s.recorder.events {
		for _, secret := range []string{"SECRET", "plain-"} {
			if bytes.Contains(e.Body, []byte(secret)) {
				t.Errorf("%q is in %s", secret, e.Body)
			}
		}
	}
	if last := string(s.recorder.events[2].Body); !strings.Contains(last, `{"intValue":"25"}`) {
		t.Errorf("a count of tokens is masked: %s", last)
	}
}

func TestAnExporterIsAskedToComeBackWhenThereIsNoMemory(t *testing.T) {
	s := start(t, func(c *api.Config) { c.BodyBytesMax, c.BufferBytes = 16<<10, 9<<10 })
	body := strings.Replace(oneSpan, "chat m", strings.Repeat("m", 8<<10), 1)
	// An exporter drops its spans after a 500.
	if status, _, answer, h := s.export("/v1/traces", body, "X-API-KEY", "app"); status != 503 ||
		h.Get("Retry-After") != "1" || !strings.Contains(answer, `"code":14`) {
		t.Errorf("%d %s, Retry-After %q", status, answer, h.Get("Retry-After"))
	}
}

func TestSpansOfAnAppsSurroundingsAreDroppedUnlessTheyAreWanted(t *testing.T) {
	plumbing := strings.Replace(oneSpan, `"name"`, `"attributes":[{"key":"http.route","value":{}}],"name"`, 1)
	for _, keep := range []bool{false, true} {
		m := metrics.New("sidecar", "test")
		s := start(t, func(c *api.Config) { c.Metrics, c.KeepPlumbing = m, keep })
		want := 0
		if keep {
			want = 1
		}

		status, _, answer, _ := s.export("/v1/traces", plumbing, "X-API-KEY", "app")
		dropped := metric(t, m, "promptspool_otlp_dropped_total")
		told := strings.Contains(answer, `"rejectedSpans":"0","errorMessage":"1 span dropped: HTTP, database`)
		if status != 200 || told == keep || len(s.recorder.events) != want || dropped != float64(1-want) {
			t.Errorf("keep %v: %d %s, %d events and %g dropped", keep, status, answer, len(s.recorder.events), dropped)
		}
	}
}

func TestProtobufWithoutAContentTypeIsNotTakenForJSON(t *testing.T) {
	s := start(t, nil)
	// It begins with a line feed, and here its second byte, a length, is a brace: 123.
	resource := spanRequest(t)[2:]
	schema := strings.Repeat("x", '{'-len(resource)-2)
	body := "\x0a{" + resource + "\x1a" + string(rune(len(schema))) + schema
	status, _, answer, _ := s.export("/v1/traces", body, "X-API-KEY", "app",
		"Content-Type", "application/octet-stream")
	if status != 200 || len(s.recorder.events) != 1 {
		t.Errorf("%d %q, %d events", status, answer, len(s.recorder.events))
	}
}

// Exporters that are told to wait have seconds until they drop their spans.
func TestALargeExportIsTakenThoughItsBodyLeavesLittleRoom(t *testing.T) {
	s := start(t, func(c *api.Config) { c.BufferBytes = 3 << 20 })
	text := strings.Repeat("x", 4<<10)
	span := `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"` + text + `"}`
	body := `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(span+",", 599) + span + `]}]}]}`

	status, _, answer, _ := s.export("/v1/traces", body, "X-API-KEY", "app")
	if status != 200 || len(s.recorder.events) != 600 {
		t.Errorf("%d %s, %d spans were recorded, want 600", status, answer, len(s.recorder.events))
	}
}

// held is a Recorder that holds the first calls until open is closed.
type held struct {
	wire.Recorder
	calls   atomic.Int64
	arrived chan struct{} // once for each call that is held
	open    chan struct{}
}

const heldCalls = 16

func (h *held) Record(ctx context.Context, id wire.Identity, events []wire.Event) ([]wire.Result, error) {
	if h.calls.Add(1) <= heldCalls {
		h.arrived <- struct{}{}
		<-h.open
	}
	return h.Recorder.Record(ctx, id, events)
}

// oneLog is a message of oneSpan's call, between a line of the app and an event without a span.
const oneLog = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[
	{"body":{"stringValue":"a line of the app"}},
	{"eventName":"gen_ai.user.message","timeUnixNano":"1700000000000000000",
	 "body":{"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"Hi"}},
	  {"key":"api_key","value":{"stringValue":"plain-secret"}}]}},
	 "traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"},
	{"eventName":"gen_ai.choice"}]}]}]}`

func TestLogRecordsAboutCallsAreRecordedOnce(t *testing.T) {
	m := metrics.New("sidecar", "test")
	s := start(t, func(c *api.Config) { c.Metrics = m })
	paths := []string{
		"/v1/logs", "/otel/v1/logs", "/api/public/otel/v1/logs", "/v1/logs/v1/logs", "/v1/traces/v1/logs",
		"/otel/v1/logs/v1/logs", "/api/public/otel/v1/traces/v1/logs",
	}
	for _, path := range paths {
		status, _, answer, _ := s.export(path, oneLog, "Authorization", "Bearer app")
		if status != 200 || answer != `{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":`+
			`"an event about a model call must have the traceId and the spanId of the call's span; `+
			`1 log record dropped: not about model calls"}}` {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}

	if len(s.recorder.events) != len(paths) {
		t.Fatalf("%d events were recorded, want %d", len(s.recorder.events), len(paths))
	}
	first := s.recorder.events[0]
	for _, e := range s.recorder.events {
		if e.Kind != wire.KindLog || e.ID != first.ID || e.RequestID != first.RequestID ||
			!bytes.Equal(e.Body, first.Body) || strings.Contains(string(e.Body), "plain-secret") {
			t.Errorf("another event: %+v with %s", e, e.Body)
		}
	}
	refused, dropped := metric(t, m, "promptspool_otlp_refused_total"), metric(t, m, "promptspool_otlp_dropped_total")
	if n := float64(len(paths)); refused != n || dropped != n {
		t.Errorf("%g are counted as refused and %g as dropped, want %g of each", refused, dropped, n)
	}
}

// logText collects what is logged.
type logText struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(b)
}

func TestWhatIsNotKeptIsToldCountedAndLoggedOnce(t *testing.T) {
	m, drops, log := metrics.New("sidecar", "test"), new(api.DropCounter), new(logText)
	s := start(t, func(c *api.Config) {
		c.Metrics, c.Drops, c.Logger = m, drops, slog.New(slog.NewTextHandler(log, nil))
	})

	// Lines of an app, twice, and metrics.
	lines := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}},{}]}]}]}`
	for _, c := range []struct{ path, body, told string }{
		{"/v1/logs", lines, `"rejectedLogRecords":"0","errorMessage":"2 log records dropped: not about model calls"`},
		{"/v1/logs", lines, `"2 log records dropped: not about model calls"`},
		{"/v1/metrics", `{"resourceMetrics":[{}]}`, `OTEL_METRICS_EXPORTER=none`},
	} {
		if status, _, answer, _ := s.export(c.path, c.body, "X-API-KEY", "app"); status != 200 ||
			!strings.Contains(answer, c.told) {
			t.Errorf("%s: %d %s", c.path, status, answer)
		}
	}

	total := drops.Of("")
	if len(total) != 2 || total[0].Count != 4 || total[1].Count != 1 ||
		metric(t, m, "promptspool_otlp_dropped_total") != 5 {
		t.Errorf("counted are %+v", total)
	}
	text := log.String()
	if strings.Count(text, "not about model calls") != 1 || strings.Count(text, "metrics export dropped") != 1 {
		t.Errorf("logged is\n%s", text)
	}
}

func TestSpansAndLogRecordsAtEachOthersPathAreKept(t *testing.T) {
	s := start(t, nil)
	for _, c := range []struct {
		path, body string
		want       []wire.Kind
	}{
		{"/v1/logs", oneSpan, []wire.Kind{wire.KindSpan}},
		{"/v1/logs", spanRequest(t), []wire.Kind{wire.KindSpan}},
		{"/v1/metrics", spanRequest(t), []wire.Kind{wire.KindSpan}},
		{"/v1/traces", oneLog, []wire.Kind{wire.KindLog}},
		{"/", oneLog, []wire.Kind{wire.KindLog}},
	} {
		kind := "application/json"
		if c.body[0] != '{' {
			kind = "application/x-protobuf"
		}
		s.recorder.events = nil
		status, _, answer, _ := s.export(c.path, c.body, "X-API-KEY", "app", "Content-Type", kind)
		var kept []wire.Kind
		for _, e := range s.recorder.events {
			kept = append(kept, e.Kind)
		}
		if status != 200 || !slices.Equal(kept, c.want) {
			t.Errorf("%s %.30q: %d %s, kept %v", c.path, c.body, status, answer, kept)
		}
	}

	// The answer has the form of the path's.
	_, _, answer, _ := s.export("/v1/traces", oneLog, "X-API-KEY", "app")
	if !strings.Contains(answer, `"rejectedSpans":"1"`) || !strings.Contains(answer, "1 log record dropped") {
		t.Errorf("log records at the path of spans: %s", answer)
	}
}

func TestTheRecordsOfACodingAgentAreSpansAndThePiecesOfItsStreamsAreDropped(t *testing.T) {
	record := func(name string) string {
		return `{"observedTimeUnixNano":"1700000000000000000","attributes":{"event.name":"codex.` + name +
			`","conversation.id":"s"}}`
	}
	body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record("user_prompt") + "," + record("sse_event") +
		`]}]}]}`
	for _, keep := range []bool{false, true} {
		s := start(t, func(c *api.Config) { c.KeepPlumbing = keep })
		want := 1
		if keep {
			want = 2
		}

		status, _, answer, _ := s.export("/v1/logs", body, "X-API-KEY", "app")
		told, events := strings.Contains(answer, "1 log record dropped"), s.recorder.events
		if status != 200 || told == keep || len(events) != want || events[0].Kind != wire.KindSpan {
			t.Errorf("keep %v: %d %s, and %+v", keep, status, answer, events)
		}
	}
}
