//go:build linux

package e2e

import (
	"strings"
	"testing"
)

func TestWhatWasAckedSurvivesTheServersAbsenceAndAKill(t *testing.T) {
	serverData, sidecarData := t.TempDir(), t.TempDir()
	server := startServer(t, serverData, freePort(t))
	addr := server.addr
	sidecar := startSidecar(t, sidecarData, addr)
	first := sidecar.track("/rest/track-request", adminKey, chat())
	server.record(first, events(1))
	server.stop()

	var ids []string
	for range 20 {
		ids = append(ids, sidecar.track("/rest/track-request", adminKey, chat()))
	}
	sidecar.track("/rest/track-score", adminKey, map[string]any{"request_id": ids[19], "score": 99})
	sidecar.kill() // right after an answer

	sidecar = startSidecar(t, sidecarData, addr)
	if status := sidecar.spoolStatus(); status["gaps"] != 0.0 || status["events"].(float64) < 21 {
		t.Errorf("after the kill the spool holds %v", status)
	}
	sidecar.track("/rest/track-metadata", adminKey, map[string]any{
		"request_id": ids[0], "metadata": map[string]string{"k": "v"},
	})
	server = startServer(t, serverData, addr)
	for i, id := range ids {
		count := 1
		if i == 0 || i == 19 {
			count = 2
		}
		server.record(id, events(count))
	}
	sidecar.emptied()
	if got := server.total(nil); got != 21 {
		t.Errorf("%d records, want 21", got)
	}
	sidecar.stop()
	server.stop()
}

func TestAKeyNeverSeenIsTakenOnTrustAndJudgedByTheServer(t *testing.T) {
	addr := freePort(t)
	sidecar := startSidecar(t, t.TempDir(), addr)
	good := sidecar.call("POST", "/rest/track-request", with(chat(), "api_key", adminKey))
	bad := sidecar.call("POST", "/rest/track-request", with(chat(), "api_key", "nobody's key"))
	for _, r := range []reply{good, bad} {
		if r.Status != 200 || !strings.Contains(r.JSON["message"].(string), "not verified") {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
	}
	if r := sidecar.call("POST", "/prompt-templates/x", nil, "X-API-KEY", adminKey); r.Status != 503 {
		t.Errorf("a template with a key that no server has judged: %d %s", r.Status, r.Body)
	}

	// The server comes, and judges both keys.
	server := startServer(t, t.TempDir(), addr)
	server.record(good.JSON["request_id"].(string), events(1))
	sidecar.emptied()
	if s := sidecar.spoolStatus(); s["held"] != 1.0 || s["dead"] != 0.0 {
		t.Errorf("the event of the unknown key is not held: %v", s)
	}

	if r := sidecar.call("POST", "/rest/track-request", with(chat(), "api_key", "nobody's key")); r.Status != 401 {
		t.Errorf("the unknown key, now judged: %d %s", r.Status, r.Body)
	}
	if n := server.total(nil); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

func TestStoppingWithAServerAwayIsQuickAndSaysWhatIsLeft(t *testing.T) {
	sidecar := startSidecar(t, t.TempDir(), freePort(t), "--drain", "100ms")
	sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.stop()
	if log := sidecar.logged(); !strings.Contains(log, `"events":1`) || !strings.Contains(log, "stay in the spool") {
		t.Errorf("the log does not say what is left:\n%s", log)
	}
}

func TestASpoolIsOpenedByOneProcess(t *testing.T) {
	sidecar := startSidecar(t, t.TempDir(), freePort(t))
	_, errs, code := runCommand(t, nil, "sidecar", "--data", sidecar.data, "--upstream", "http://127.0.0.1:1",
		"--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	if code != 1 || !strings.Contains(errs, "process") {
		t.Errorf("a second sidecar on the folder: %d %s", code, errs)
	}
}
