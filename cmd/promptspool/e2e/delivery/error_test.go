//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAnErrorOfAFieldIsToldOnce(t *testing.T) {
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	server.Call("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}"), "X-API-KEY", harness.AdminKey)

	label := map[string]any{"name": "prod", "prompt_version_number": 99}
	r := server.Call("POST", "/prompts/team%2Fgreet/label", label, "X-API-KEY", harness.AdminKey)
	want := "prompt_version_number is 99, which does not exist; the latest version of `team/greet` is 1."
	if r.Status != 422 || r.JSON["message"] != want {
		t.Errorf("a label for version 99: %d %s, want %s", r.Status, r.Body, want)
	}

	_, errs := harness.Run(t, 1, "templates", "render", "team/greet", "--provider", "nobody",
		"--url", "http://"+server.Addr)
	if strings.Count(errs, "is not one that") != 1 {
		t.Errorf("the command says %s", errs)
	}
}
