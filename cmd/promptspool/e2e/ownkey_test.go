//go:build linux

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestASidecarWithAKeyOfItsOwnServesAppsThatHaveNone(t *testing.T) {
	server := startPlainServer(t, freePort(t))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(adminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sidecar := startSidecar(t, t.TempDir(), server.addr, "--api-key-file", file)
	if r := server.call("POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "greet"},
		"prompt_version": map[string]any{"prompt_template": map[string]any{"type": "completion",
			"content": []any{map[string]any{"type": "text", "text": "Hello {name}"}}}},
	}, "X-API-KEY", adminKey); r.Status/100 != 2 {
		t.Fatalf("publishing: %d %s", r.Status, r.Body)
	}

	for scene, header := range map[string][]string{"no key": nil, "a placeholder": {"X-API-KEY", "placeholder"}} {
		r := sidecar.call("POST", "/rest/track-request", with(chat(), "api_key", "anything"), header...)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", scene, r.Status, r.Body)
		}
		server.record(r.JSON["request_id"].(string), events(1))
		if r := sidecar.call("POST", "/prompt-templates/greet", nil, header...); r.Status != 200 {
			t.Errorf("%s: fetching a template: %d %s", scene, r.Status, r.Body)
		}

		for _, call := range [][2]string{
			{"POST", "/api/public/v2/requests/search"}, {"POST", "/rest/prompt-templates"},
			{"GET", "/prompt-templates"},
			{"POST", "/sync/events"}, {"GET", "/sync/key"},
		} {
			body := any("{}")
			if call[0] == "GET" {
				body = nil
			}
			r := sidecar.call(call[0], call[1], body, header...)
			if r.Status != 403 || !strings.Contains(string(r.Body), "--api-key") {
				t.Errorf("%s: %s %s: %d %s; want 403 with the reason", scene, call[0], call[1], r.Status, r.Body)
			}
		}
	}

	sidecar.emptied()
	if found := filesHolding(t, sidecar.data, "placeholder"); len(found) > 0 {
		t.Errorf("the key that the app sent is in %v", found)
	}
}

func TestASidecarWithALocalKeyWantsIt(t *testing.T) {
	server := startPlainServer(t, freePort(t))
	env := []string{"PROMPTSPOOL_API_KEY=" + adminKey, "PROMPTSPOOL_LOCAL_KEY=only here"}
	n := begin(t, program(t), env, t.TempDir(), "127.0.0.1:0", "sidecar", "--upstream", "http://"+server.addr)
	if !n.takes() {
		t.Fatal(n.logged())
	}

	for key, want := range map[string]int{"only here": 200, "only there": 401, adminKey: 401} {
		if r := n.call("POST", "/rest/track-request", with(chat(), "api_key", key)); r.Status != want {
			t.Errorf("%q: %d %s; want %d", key, r.Status, r.Body, want)
		}
	}

	if r := n.call("POST", "/rest/track-request", chat()); r.Status != 401 {
		t.Errorf("no key: %d %s", r.Status, r.Body)
	}
	if log := n.logged(); strings.Contains(log, "only here") || strings.Contains(log, adminKey) {
		t.Error("a key is in the log")
	}

	for _, args := range [][]string{
		{"sidecar", "--data", "x", "--upstream", "http://127.0.0.1:1", "--local-key", "x"},
		{"sidecar", "--data", "x", "--upstream", "http://127.0.0.1:1", "--api-key", "x", "--api-key-file", "y"},
	} {
		if _, stderr, code := runCommand(t, nil, args...); code != 2 || !strings.Contains(stderr, "key") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

func TestASidecarsOwnKeyIsRotatedInItsFile(t *testing.T) {
	t.Parallel()
	server := startPlainServer(t, freePort(t))
	made, _, _ := runCommand(t, nil, "keys", "create", "--data", server.data, "--account", "default", "-o", "json")
	var second struct{ Key string }
	if err := json.Unmarshal([]byte(made), &second); err != nil {
		t.Fatalf("%v: %s", err, made)
	}

	own, local := written(t, "key", adminKey), written(t, "local", "before")
	sidecar := startSidecar(t, t.TempDir(), server.addr, "--api-key-file", own, "--local-key-file", local)

	write := func(present string) int {
		t.Helper()
		return sidecar.call("POST", "/rest/track-request", with(chat(), "api_key", present)).Status
	}
	rewrite := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sidecar.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}

	used := func(key string) bool { return len(filesHolding(t, filepath.Join(sidecar.data, "keys"), key)) > 0 }

	if status := write("before"); status != 200 || !used(adminKey) || used(second.Key) {
		t.Fatalf("before: %d, %v, %v", status, used(adminKey), used(second.Key))
	}

	rewrite(own, second.Key)
	rewrite(local, "after")
	sidecar.eventually(func() bool { return write("after") == 200 }, sidecar.logged)
	if status := write("before"); status != 401 {
		t.Errorf("the old local key: %d", status)
	}
	sidecar.emptied()
	if !used(second.Key) {
		t.Error("the sidecar does not use the new key of its file")
	}

	rewrite(local, "") // as an editor does before it writes
	sidecar.eventually(func() bool {
		return strings.Contains(sidecar.metrics(), "promptspool_config_reload_failures_total 1\n")
	}, sidecar.logged)
	if status := write("after"); status != 200 {
		t.Errorf("after a file without a key: %d", status)
	}
}
