//go:build linux

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// TestOpenTelemetrysOwnSDKExportsSpans has the SDK and the exporters that npm has export to a
// sidecar's listener for them, with nothing but the environment set.
func TestOpenTelemetrysOwnSDKExportsSpans(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	listener := harness.FreePort(t)
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr, "--otlp-listen", listener)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "otel.mjs")
	node.Dir = harness.NPMModules(t, "testdata/otel")
	node.Env = append(os.Environ(),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+harness.ComparingProxy(t, listener),
		"GRPC_ENDPOINT=http://"+listener,
		"OTEL_EXPORTER_OTLP_HEADERS=X-API-KEY="+harness.AdminKey,
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	var errs strings.Builder
	node.Stderr = &errs
	out, err := node.Output()

	var exported map[string]struct {
		Trace string
		Spans map[string]string
	}
	if err == nil {
		err = json.Unmarshal(out, &exported)
	}
	if err != nil || errs.Len() > 0 || len(exported) != 3 {
		t.Fatalf("node: %v\n%s\n%s", err, out, errs.String())
	}
	sidecar.Emptied()

	for form, e := range exported {
		var stored wire.Trace
		if r := sidecar.Get("/api/public/v2/traces/" + e.Trace); json.Unmarshal(r.Body, &stored) != nil {
			t.Fatalf("%s: the trace: %d %s", form, r.Status, r.Body)
		}
		records := map[string]string{}
		for _, s := range stored.Spans {
			isRoot := s.Name == "agent" && s.ParentID == nil
			isChild := s.ParentID != nil && *s.ParentID == e.Spans["agent"]
			if e.Spans[s.Name] != s.SpanID || !isRoot && !isChild || s.EndTime.Before(*s.StartTime) {
				t.Errorf("%s: the trace has %+v", form, s)
			}
			records[s.Name] = s.ID
		}
		if len(records) != len(e.Spans) || len(stored.Spans) != len(e.Spans) {
			t.Errorf("%s: %d spans were exported, the trace has %d", form, len(e.Spans), len(stored.Spans))
		}

		chat := string(server.Record(records["chat gpt-4o"], harness.Events(1)).Span)
		wantsAll(t, form, chat, `"telemetry.sdk.name","value":{"stringValue":"opentelemetry"}`,
			`"scope":{"name":"app","version":"1.2.3"}`,
			`{"key":"gen_ai.request.temperature","value":{"doubleValue":0.5}}`,
			`{"key":"gen_ai.request.stream","value":{"boolValue":false}}`,
			`{"arrayValue":{"values":[{"stringValue":"END"},{"stringValue":"é\u2028"}]}}`,
			`{"key":"gen_ai.usage.input_tokens","value":{"intValue":"3"}}`,
			`\"content\":\"hello\"`, `"name":"first token"`, `"status":{"code":1}`)
		tool := string(server.Record(records["execute_tool"], harness.Events(1)).Span)
		wantsAll(t, form, tool, `"name":"exception"`, `"status":{"message":"no such file","code":2}`,
			fmt.Sprintf(`"parentSpanId":%q`, e.Spans["agent"]))
	}
}

// wantsAll checks that a body holds all parts.
func wantsAll(t *testing.T, what, body string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(body, part) {
			t.Errorf("%s: %s is not in %s", what, part, body)
		}
	}
}
