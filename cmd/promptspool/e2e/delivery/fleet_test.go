//go:build linux

package delivery

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

func TestTheFleetTellsWhatEachSidecarLacks(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	data := t.TempDir()
	sidecar := harness.Launch(t, data, "127.0.0.1:0", "sidecar", "--name", "pod\x1b[31m-1", "--upstream",
		"http://"+server.Addr)
	// Nothing that exporters send is dropped in silence.
	const lines = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]}]}]}`
	for _, node := range []*harness.Node{server, sidecar} {
		r := node.Call("POST", "/v1/logs", lines, "X-API-KEY", harness.AdminKey, "Content-Type", "application/json")
		if !strings.Contains(string(r.Body), "2 log records dropped") {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	sidecar.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
		"request_id": wire.NewID(), "metadata": map[string]string{"a": "b"},
	})

	fleet := func() wire.Fleet {
		var f wire.Fleet
		if r := server.Get("/sync/fleet"); r.Status != 200 || json.Unmarshal(r.Body, &f) != nil {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		return f
	}
	server.Eventually(func() bool {
		f := fleet()
		// The first heartbeat may be older than what was dropped.
		return len(f.Items) == 1 && f.Items[0].Alive && f.Items[0].ClockAhead != nil && len(f.Items[0].DroppedToday) > 0
	}, func() string { return fmt.Sprintf("the fleet is %+v", fleet()) })

	first := fleet().Items[0]
	dropped := []wire.Drop{{Count: 2, What: "log record", Why: "not about model calls"}}
	if of := fleet().DroppedToday; !slices.Equal(of, dropped) || !slices.Equal(first.DroppedToday, dropped) {
		t.Errorf("the server says that it dropped %+v, and the sidecar %+v", of, first.DroppedToday)
	}
	if text, err := os.ReadFile(filepath.Join(data, "id")); err != nil || strings.TrimSpace(string(text)) != first.ID {
		t.Errorf("the sidecar's id is %q and the fleet says %s (%v)", text, first.ID, err)
	}

	// For people, a name cannot drive the terminal; for programs it is whole. A sidecar
	// reports the same fleet.
	for _, url := range []string{"http://" + server.Addr, "http://" + sidecar.Addr} {
		out, errs, code := harness.RunWith(t, []string{"PROMPTSPOOL_KEY=" + harness.AdminKey}, "status", "--url", url)
		isPlain := !strings.Contains(out, "\x1b") && strings.Contains(out, "pod [31m-1")
		if code != 0 || !isPlain || !strings.Contains(out, "online") {
			t.Errorf("status: %d\n%s%s", code, out, errs)
		}
	}
	var listed wire.Fleet
	key := []string{"PROMPTSPOOL_KEY=" + harness.AdminKey}
	out, _, _ := harness.RunWith(t, key, "status", "--url", "http://"+server.Addr, "-o", "json")
	err := json.Unmarshal([]byte(out), &listed)
	if err != nil || listed.Items[0].Name != "pod\x1b[31m-1" || strings.Contains(out, "\x1b") {
		t.Errorf("as JSON: %v\n%s", err, out)
	}

	// Beside each process.
	out, errs, code := harness.RunWith(t, nil, "status", "--data", data)
	if code != 0 || !strings.Contains(out, first.ID) || !strings.Contains(out, "queued") ||
		!strings.Contains(out, "2 log records dropped today: not about model calls") {
		t.Errorf("status beside the sidecar: %d\n%s%s", code, out, errs)
	}
	out, errs, code = harness.RunWith(t, nil, "status", "--data", server.Data, "-o", "json")
	if code != 0 || !strings.Contains(out, `"sidecars": 1,`) || !strings.Contains(out, `"sidecars_alive": 1`) {
		t.Errorf("status beside the server: %d\n%s%s", code, out, errs)
	}

	// The id outlives a restart, so it stays one sidecar.
	sidecar.Stop()
	harness.Launch(t, data, "127.0.0.1:0", "sidecar", "--name", "renamed", "--upstream", "http://"+server.Addr)
	server.Eventually(func() bool {
		f := fleet()
		return len(f.Items) == 1 && f.Items[0].Name == "renamed" && f.Items[0].ID == first.ID
	}, func() string { return fmt.Sprintf("after a restart the fleet is %+v", fleet()) })

	for _, body := range []string{
		`{}`,
		`{"id":"x"}`,
		`{"id":"` + first.ID + `","name":"","version":"1","started_at":"2026-01-01T00:00:00Z"}`,
		`{"id":"` + first.ID + `","name":"n","version":"1","started_at":"2026-01-01T00:00:00Z","held_events":-1}`,
	} {
		if r := server.Call("POST", "/sync/heartbeat", body, "X-API-KEY", harness.AdminKey); r.Status != 422 {
			t.Errorf("heartbeat %s: %d %s", body, r.Status, r.Body)
		}
	}
}

// A sidecar reports with its key, so it cannot say that the server refuses it.
func TestTheServerSaysWhoseKeyWasRevoked(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	var key struct{ ID, Key string }
	out, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", server.Data,
		"--project", "default", "--name", "app", "-o", "json")
	if code != 0 || json.Unmarshal([]byte(out), &key) != nil {
		t.Fatalf("keys create: %s%s", out, errs)
	}
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	track := func() {
		sidecar.Track("/rest/track-metadata", key.Key, map[string]any{
			"request_id": wire.NewID(), "metadata": map[string]string{"a": "b"},
		})
	}
	status := func() string {
		out, _, _ := harness.RunWith(t, []string{"PROMPTSPOOL_KEY=" + harness.AdminKey}, "status",
			"--url", "http://"+server.Addr)
		return out
	}

	track()
	server.Eventually(func() bool { return strings.Contains(status(), "online") }, status)
	if shown := status(); strings.Contains(shown, "needs attention") {
		t.Errorf("all is well:\n%s", shown)
	}
	if _, errs, code := harness.RunWith(t, nil, "keys", "revoke", "--data", server.Data, key.ID); code != 0 {
		t.Fatalf("keys revoke: %s", errs)
	}
	track()
	server.Eventually(func() bool {
		return strings.Contains(status(), " needs attention: Its key was revoked")
	}, status)
}
