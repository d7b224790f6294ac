//go:build linux

package e2e

import (
	"strings"
	"testing"
)

func TestAnErrorOfAFieldIsToldOnce(t *testing.T) {
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	server.call("POST", "/rest/prompt-templates", greeting("Hello {name}"), "X-API-KEY", adminKey)

	label := map[string]any{"name": "prod", "prompt_version_number": 99}
	r := server.call("POST", "/prompts/team%2Fgreet/label", label, "X-API-KEY", adminKey)
	want := "prompt_version_number is 99, which does not exist; the latest version of `team/greet` is 1."
	if r.Status != 422 || r.JSON["message"] != want {
		t.Errorf("a label for version 99: %d %s, want %s", r.Status, r.Body, want)
	}

	_, errs := promptspool(t, 1, "templates", "render", "team/greet", "--provider", "nobody",
		"--url", "http://"+server.addr)
	if strings.Count(errs, "is not one that") != 1 {
		t.Errorf("the command says %s", errs)
	}
}
