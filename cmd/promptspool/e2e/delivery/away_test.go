//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestWhatWasAckedSurvivesTheServersAbsenceAndAKill(t *testing.T) {
	serverData, sidecarData := t.TempDir(), t.TempDir()
	server := harness.StartServer(t, serverData, harness.FreePort(t))
	addr := server.Addr
	sidecar := harness.StartSidecar(t, sidecarData, addr)
	first := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	server.Record(first, harness.Events(1))
	server.Stop()

	var ids []string
	for range 20 {
		ids = append(ids, sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()))
	}
	sidecar.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": ids[19], "score": 99})
	sidecar.Kill() // right after an answer

	sidecar = harness.StartSidecar(t, sidecarData, addr)
	if status := sidecar.SpoolStatus(); status["gaps"] != 0.0 || status["events"].(float64) < 21 {
		t.Errorf("after the kill the spool holds %v", status)
	}
	sidecar.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
		"request_id": ids[0], "metadata": map[string]string{"k": "v"},
	})
	server = harness.StartServer(t, serverData, addr)
	for i, id := range ids {
		count := 1
		if i == 0 || i == 19 {
			count = 2
		}
		server.Record(id, harness.Events(count))
	}
	sidecar.Emptied()
	if got := server.Total(nil); got != 21 {
		t.Errorf("%d records, want 21", got)
	}
	sidecar.Stop()
	server.Stop()
}

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

func TestStoppingWithAServerAwayIsQuickAndSaysWhatIsLeft(t *testing.T) {
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t), "--drain", "100ms")
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Stop()
	if log := sidecar.Logged(); !strings.Contains(log, `"events":1`) || !strings.Contains(log, "stay in the spool") {
		t.Errorf("the log does not say what is left:\n%s", log)
	}
}
