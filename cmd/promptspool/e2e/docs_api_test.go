//go:build linux

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/metrics/parts"
)

// apiExample is the mark of the calls in the API reference.
const apiExample = "(an example)"

// TestTheExamplesOfTheAPIAreAnswered makes every call of the API reference as it stands, at a
// server that has the request and the template that they name.
func TestTheExamplesOfTheAPIAreAnswered(t *testing.T) {
	t.Parallel()
	parts.Need(t, "curl")
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	const id = "0198c5a0-7a3c-7b62-9d0e-5f8a4c2b1e90"
	call := chat()
	call["request_id"] = id
	if got := server.track("/rest/track-request", adminKey, call); got != id {
		t.Fatalf("the request has the id %s", got)
	}
	for _, text := range []string{"Say hi to {name}.", "Say hello to {name}."} {
		published := server.call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": "greet"},
			"prompt_version": map[string]any{"prompt_template": map[string]any{
				"type": "chat", "messages": []any{map[string]any{"role": "user", "content": text}},
			}},
			"release_labels": []string{"prod"},
		}, "X-API-KEY", adminKey)
		if published.Status != 201 {
			t.Fatalf("%d %s", published.Status, published.Body)
		}
	}

	calls, path := 0, readersPath(t)
	own := strings.NewReplacer("curl -s", "curl -s -m 20 -w '\n%{http_code}'",
		"127.0.0.1:8787", compared(t, sidecar.addr), "127.0.0.1:8788", compared(t, server.addr))
	for _, page := range docs.Names() {
		for _, e := range examplesOf(page) {
			if e.language != "sh" || e.rest != apiExample {
				continue
			}
			calls++
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", own.Replace(e.code))
			cmd.Env = []string{"PROMPTSPOOL_KEY=" + adminKey, path}
			out, err := cmd.CombinedOutput()
			answer := string(out)
			if status := answer[strings.LastIndex(answer, "\n")+1:]; err != nil || !strings.HasPrefix(status, "2") {
				t.Errorf("%s:\n%s%s\n%v", page, e.code, answer, err)
			}
		}
	}
	if calls < 40 {
		t.Errorf("only %d calls were made", calls)
	}
}
