//go:build linux

package clients

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// apiExample is the mark of the calls in the API reference.
const apiExample = "(an example)"

// TestTheExamplesOfTheAPIAreAnswered makes every call of the API reference as it stands, at a
// server that has the request and the template that they name.
func TestTheExamplesOfTheAPIAreAnswered(t *testing.T) {
	t.Parallel()
	partstest.Need(t, "curl")
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer hook.Close()
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0", "server", "--webhook-allow", "127.0.0.1/32")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	const id = "0198c5a0-7a3c-7b62-9d0e-5f8a4c2b1e90"
	call := harness.Chat()
	call["request_id"] = id
	if got := server.Track("/rest/track-request", harness.AdminKey, call); got != id {
		t.Fatalf("the request has the id %s", got)
	}
	ofSession := harness.Chat()
	ofSession["session_id"] = "s-4711"
	server.Track("/rest/track-request", harness.AdminKey, ofSession)
	for _, text := range []string{"Say hi to {name}.", "Say hello to {name}."} {
		published := server.Call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": "greet"},
			"prompt_version": map[string]any{"prompt_template": map[string]any{
				"type": "chat", "messages": []any{map[string]any{"role": "user", "content": text}},
			}},
			"release_labels": []string{"prod"},
		}, "X-API-KEY", harness.AdminKey)
		if published.Status != 201 {
			t.Fatalf("%d %s", published.Status, published.Body)
		}
	}

	calls, path := 0, readersPath(t)
	own := strings.NewReplacer("curl -s", "curl -s -m 20 -w '\n%{http_code}'",
		"https://hooks.example.com/promptspool", hook.URL,
		"127.0.0.1:8787", harness.ComparingProxy(t, sidecar.Addr),
		"127.0.0.1:8788", harness.ComparingProxy(t, server.Addr))
	for _, page := range docs.Names() {
		for _, e := range harness.ExamplesOf(page) {
			if e.Language != "sh" || e.Rest != apiExample {
				continue
			}
			calls++
			cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", own.Replace(e.Code))
			cmd.Env = []string{"PROMPTSPOOL_KEY=" + harness.AdminKey, path}
			out, err := cmd.CombinedOutput()
			answer := string(out)
			if status := answer[strings.LastIndex(answer, "\n")+1:]; err != nil || !strings.HasPrefix(status, "2") {
				t.Errorf("%s:\n%s%s\n%v", page, e.Code, answer, err)
			}
		}
	}
	if calls < 40 {
		t.Errorf("only %d calls were made", calls)
	}
}
