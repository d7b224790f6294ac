package api_test

import (
	"bytes"
	"strings"
	"testing"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/metrics"
)

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
			`"an event about a model call must have the traceId and the spanId of the call's span"}}` {
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

func TestAFullSpoolAsksForLogRecordsAgain(t *testing.T) {
	s := start(t, func(c *api.Config) {
		c.Recorder.(*recorder).do = func([]wire.Event) ([]wire.Result, error) {
			return nil, wire.Unavailable(1e11, "The spool is full.")
		}
	})
	status, _, answer, h := s.export("/v1/logs", oneLog, "X-API-KEY", "app")
	if status != 503 || h.Get("Retry-After") != "2" || !strings.Contains(answer, `"code":14`) {
		t.Errorf("%d, Retry-After %q, %s", status, h.Get("Retry-After"), answer)
	}

	// In protobuf, a google.rpc.Status.
	status, kind, answer, _ := s.export("/v1/traces", spanRequest(t), "X-API-KEY", "app",
		"Content-Type", "application/x-protobuf")
	if status != 503 || kind != "application/x-protobuf" || !strings.HasPrefix(answer, "\x08\x0e\x12") {
		t.Errorf("%d %s %q", status, kind, answer)
	}
}
