//go:build linux

package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestASidecarWithAKeyOfItsOwnServesAppsThatHaveNone(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(harness.AdminKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr, "--api-key-file", file)
	if r := server.Call("POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "greet"},
		"prompt_version": map[string]any{"prompt_template": map[string]any{"type": "completion",
			"content": []any{map[string]any{"type": "text", "text": "Hello {name}"}}}},
	}, "X-API-KEY", harness.AdminKey); r.Status/100 != 2 {
		t.Fatalf("publishing: %d %s", r.Status, r.Body)
	}

	for scene, header := range map[string][]string{"no key": nil, "a placeholder": {"X-API-KEY", "placeholder"}} {
		r := sidecar.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", "anything"), header...)
		if r.Status != 200 {
			t.Fatalf("%s: %d %s", scene, r.Status, r.Body)
		}
		server.Record(r.JSON["request_id"].(string), harness.Events(1))
		if r := sidecar.Call("POST", "/prompt-templates/greet", nil, header...); r.Status != 200 {
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
			r := sidecar.Call(call[0], call[1], body, header...)
			if r.Status != 403 || !strings.Contains(string(r.Body), "--api-key") {
				t.Errorf("%s: %s %s: %d %s; want 403 with the reason", scene, call[0], call[1], r.Status, r.Body)
			}
		}
	}

	sidecar.Emptied()
	if found := harness.FilesHolding(t, sidecar.Data, "placeholder"); len(found) > 0 {
		t.Errorf("the key that the app sent is in %v", found)
	}
}

func TestASidecarWithALocalKeyWantsIt(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	env := []string{"PROMPTSPOOL_API_KEY=" + harness.AdminKey, "PROMPTSPOOL_LOCAL_KEY=only here"}
	n := harness.Begin(t, harness.Program(t), env, t.TempDir(), "127.0.0.1:0", "sidecar", "--upstream",
		"http://"+server.Addr)
	if !n.Takes() {
		t.Fatal(n.Logged())
	}

	for key, want := range map[string]int{"only here": 200, "only there": 401, harness.AdminKey: 401} {
		if r := n.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", key)); r.Status != want {
			t.Errorf("%q: %d %s; want %d", key, r.Status, r.Body, want)
		}
	}

	if r := n.Call("POST", "/rest/track-request", harness.Chat()); r.Status != 401 {
		t.Errorf("no key: %d %s", r.Status, r.Body)
	}
	if log := n.Logged(); strings.Contains(log, "only here") || strings.Contains(log, harness.AdminKey) {
		t.Error("a key is in the log")
	}

	for _, args := range [][]string{
		{"sidecar", "--data", "x", "--upstream", "http://127.0.0.1:1", "--local-key", "x"},
		{"sidecar", "--data", "x", "--upstream", "http://127.0.0.1:1", "--api-key", "x", "--api-key-file", "y"},
	} {
		if _, stderr, code := harness.RunWith(t, nil, args...); code != 2 || !strings.Contains(stderr, "key") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

func TestASidecarsOwnKeyIsRotatedInItsFile(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	made, _, _ := harness.RunWith(t, nil, "keys", "create", "--data", server.Data, "--project", "default", "-o", "json")
	var second struct{ Key string }
	if err := json.Unmarshal([]byte(made), &second); err != nil {
		t.Fatalf("%v: %s", err, made)
	}

	own, local := harness.WriteFile(t, "key", harness.AdminKey), harness.WriteFile(t, "local", "before")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr, "--api-key-file", own, "--local-key-file", local)

	write := func(present string) int {
		t.Helper()
		return sidecar.Call("POST", "/rest/track-request", harness.With(harness.Chat(), "api_key", present)).Status
	}
	rewrite := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sidecar.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}

	used := func(key string) bool {
		return len(harness.FilesHolding(t, filepath.Join(sidecar.Data, "keys"), key)) > 0
	}

	if status := write("before"); status != 200 || !used(harness.AdminKey) || used(second.Key) {
		t.Fatalf("before: %d, %v, %v", status, used(harness.AdminKey), used(second.Key))
	}

	rewrite(own, second.Key)
	rewrite(local, "after")
	sidecar.Eventually(func() bool { return write("after") == 200 }, sidecar.Logged)
	if status := write("before"); status != 401 {
		t.Errorf("the old local key: %d", status)
	}
	sidecar.Emptied()
	if !used(second.Key) {
		t.Error("the sidecar does not use the new key of its file")
	}

	failures := regexp.MustCompile(`promptspool_config_reload_failures_total [1-9]`)
	rewrite(local, "") // as an editor does before it writes
	sidecar.Eventually(func() bool {
		// An earlier signal may still have been under way, and has met the empty file as well.
		return failures.MatchString(sidecar.Metrics())
	}, sidecar.Logged)
	if status := write("after"); status != 200 {
		t.Errorf("after a file without a key: %d", status)
	}
}
