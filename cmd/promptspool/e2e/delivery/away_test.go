//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAKeyNeverSeenIsTakenOnTrustAndJudgedByTheServer(t *testing.T) {
	addr := harness.FreePort(t)
	sidecar := harness.StartSidecar(t, t.TempDir(), addr)
	good := sidecar.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", harness.AdminKey))
	bad := sidecar.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", "nobody's key"))
	for _, r := range []harness.Reply{good, bad} {
		if r.Status != 200 || !strings.Contains(r.JSON["message"].(string), "not verified") {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	if r := sidecar.Call("POST", "/prompt-templates/x", nil, "X-API-KEY", harness.AdminKey); r.Status != 503 {
		t.Errorf("a template with a key that no server has judged: %d %s", r.Status, r.Body)
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
}
