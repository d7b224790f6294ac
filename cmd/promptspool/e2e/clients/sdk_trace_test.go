//go:build linux

package clients

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// TestThePublishedJavaScriptSDKTraces runs promptlayer 1.3.6 with tracing on, unmodified. What it
// both traces and logs must be one record.
func TestThePublishedJavaScriptSDKTraces(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)

	out, errs, err := runSDK(t, "trace.mjs",
		"PROMPTLAYER_BASE_URL=http://"+harness.ComparingProxy(t, sidecar.Addr), "PROMPTLAYER_API_KEY="+harness.AdminKey,
		"OPENAI_BASE_URL="+startProviders(t).URL, "OPENAI_API_KEY=sk-not-a-key")

	var gave struct {
		Ran    struct{ ID, Trace string }
		Logged string
		Said   []string
	}
	if err == nil {
		err = json.Unmarshal(out, &gave)
	}
	if err != nil || len(gave.Said) > 0 {
		t.Fatalf("node: %v\n%s\n%s", err, out, errs)
	}
	sidecar.Emptied()

	for _, id := range []string{gave.Ran.ID, gave.Logged} {
		r := server.Record(id, func(wire.Record) bool { return true })
		if r.Model != "gpt-4o-answered" || r.Tokens == nil || *r.Tokens != 7 {
			t.Errorf("the record %s: %+v", id, r)
		}
	}
	if n := server.Total(map[string]any{}); n != 2 {
		t.Errorf("%d requests are listed, want the 2 that were made", n)
	}

	var stored wire.Trace
	if r := server.Get("/api/public/v2/traces/" + gave.Ran.Trace); json.Unmarshal(r.Body, &stored) != nil {
		t.Fatalf("the trace: %d %s", r.Status, r.Body)
	}
	outer := slices.IndexFunc(stored.Spans, func(s wire.TraceSpan) bool { return s.Name == "outer" })
	run := slices.IndexFunc(stored.Spans, func(s wire.TraceSpan) bool { return s.Name == "PromptLayer Run" })
	if outer < 0 || run < 0 || *stored.Spans[run].ParentID != stored.Spans[outer].SpanID {
		t.Fatalf("the trace has %+v", stored.Spans)
	}

	// Each call has one record of its request, and one of the span around it.
	for id, name := range map[string]string{gave.Ran.ID: "PromptLayer Run", gave.Logged: "openai."} {
		r := server.Record(id, func(r wire.Record) bool { return r.SpanRecordID != "" })
		if !strings.HasPrefix(r.SpanName, name) {
			t.Errorf("the request %s is of the span %q, want %q", id, r.SpanName, name)
		}
		span := server.Record(r.SpanRecordID, func(wire.Record) bool { return true })
		if span.RequestLogID != id || span.TraceID != r.TraceID || !span.IsSpan() {
			t.Errorf("the span of %s is %+v", id, span)
		}
	}
	if of := stored.Spans[run].RequestLogID; of == nil || *of != gave.Ran.ID {
		t.Errorf("the span of the run has the request %v, want %s", of, gave.Ran.ID)
	}
	wantsAll(t, "outer", string(server.Record(stored.Spans[outer].ID, harness.Events(1)).Span),
		`{"key":"k","value":{"stringValue":"v"}}`, `"key":"function_input","value":{"stringValue":"[\"Ann\"]"}`,
		gave.Ran.ID)
}

// TestAnOldJavaScriptSDKTraces runs promptlayer 1.0.46 with tracing on, unmodified.
func TestAnOldJavaScriptSDKTraces(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)

	trace, errs, err := runSDK(t, "trace_old.mjs",
		"PROMPTLAYER_API_URL=http://"+harness.ComparingProxy(t, sidecar.Addr), "PROMPTLAYER_API_KEY="+harness.AdminKey)
	if err != nil || errs != "" {
		t.Fatalf("node: %v\n%s\n%s", err, trace, errs)
	}
	sidecar.Emptied()

	var stored wire.Trace
	r := server.Get("/api/public/v2/traces/" + string(trace))
	if json.Unmarshal(r.Body, &stored) != nil || len(stored.Spans) != 1 || stored.Spans[0].Name != "outer" {
		t.Errorf("the trace %s: %d %s", trace, r.Status, r.Body)
	}
}
