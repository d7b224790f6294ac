//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAKeyNeverSeenIsTakenOnTrustAndJudgedByTheServer(t *testing.T) {
	t.Parallel()
	addr := harness.FreePort(t)
	sidecar := harness.StartSidecar(t, t.TempDir(), addr)
	call := harness.With(harness.Chat(), "session_id", "s-1")
	good := sidecar.Call("POST", "/rest/track-request", harness.With(call, "api_key", harness.AdminKey))
	bad := sidecar.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", "nobody's key"))
	for _, r := range []harness.Reply{good, bad} {
		if r.Status != 200 || !strings.Contains(r.JSON["message"].(string), "not verified") {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	if r := sidecar.Call("POST", "/prompt-templates/x", nil, "X-API-KEY", harness.AdminKey); r.Status != 503 {
		t.Errorf("a template with a key that no server has judged: %d %s", r.Status, r.Body)
	}

	// Scores may name what no server has yet: a session, a trace, and a span that comes last.
	const trace, span = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
	for score, target := range []map[string]any{
		{"session_id": "s-1"}, {"session_id": "s-1"}, {"trace_id": trace}, {"trace_id": trace, "span_id": span},
	} {
		sidecar.Track("/rest/track-score", harness.AdminKey, harness.With(target, "score", score))
	}

	// The server comes, and judges both keys.
	server := harness.StartServer(t, t.TempDir(), addr)
	server.Record(good.JSON["request_id"].(string), harness.Events(1))
	sidecar.Emptied()
	if s := sidecar.SpoolStatus(); s["held"] != 1.0 || s["dead"] != 0.0 {
		t.Errorf("the event of the unknown key is not held: %v", s)
	}

	if r := sidecar.Call("POST", "/rest/track-request",
		harness.With(harness.Chat(), "api_key", "nobody's key")); r.Status != 401 {
		t.Errorf("the unknown key, now judged: %d %s", r.Status, r.Body)
	}
	if n := server.Total(nil); n != 1 {
		t.Errorf("%d records, want 1", n)
	}

	traced := `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + trace + `","spanId":"` + span +
		`","name":"step","startTimeUnixNano":"1795318943782000000"}]}]}]}`
	if r := sidecar.Call("POST", "/v1/traces", []byte(traced), "X-API-KEY", harness.AdminKey,
		"Content-Type", harness.OTLPJSON); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	sidecar.Emptied()
	for path, want := range map[string]string{
		"sessions/s-1": `"own_scores":[{"name":"default","score":1,"value":1}]`,
		"traces/" + trace: `"scores":[{"name":"default","score":3,"value":3}]}],"complete":true,` +
			`"own_scores":[{"name":"default","score":2,"value":2}]`,
	} {
		if r := server.Get("/api/public/v2/" + path); !strings.Contains(string(r.Body), want) {
			t.Errorf("%s: %d %s, want %s", path, r.Status, r.Body, want)
		}
	}
}
