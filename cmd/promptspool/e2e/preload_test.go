//go:build linux

package e2e

import (
	"net/http"
	"testing"
)

func TestPreloadedTemplatesOutliveTheServer(t *testing.T) {
	server := launch(t, t.TempDir(), "127.0.0.1:0",
		"server", "--name", "central", "--provider-base-url", "openai=https://proxy.example/v1")
	for _, text := range []string{"one", "two"} {
		if r := server.call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": "a/greeting"}, "release_labels": []string{text},
			"prompt_version": map[string]any{"prompt_template": map[string]any{"type": "completion", "content": text},
				"metadata": map[string]any{"model": map[string]any{"provider": "openai", "name": "gpt-4o"}}},
		}, "X-API-KEY", adminKey); r.Status != http.StatusCreated {
			t.Fatalf("publish: %d %s", r.Status, r.Body)
		}
	}
	sidecar := startSidecar(t, t.TempDir(), server.addr,
		"--api-key", adminKey, "--template-preload", "a/greeting", "--template-preload", "label:one")
	sidecar.eventually(func() bool {
		res, err := http.Get("http://" + sidecar.ops + "/startupz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, func() string { return "the sidecar does not report that it has started" })

	server.kill()
	for label, want := range map[string]string{"": "two", "one": "one"} {
		r := sidecar.call("POST", "/prompt-templates/a/greeting", map[string]any{"label": label})
		kwargs, _ := r.JSON["llm_kwargs"].(map[string]any)
		through, _ := r.JSON["provider_base_url"].(map[string]any)
		if r.Status != http.StatusOK || kwargs["prompt"] != want || through["url"] != "https://proxy.example/v1" {
			t.Errorf("label %q: %d %s, want %s", label, r.Status, r.Body, want)
		}
	}
}

func TestAProviderBaseURLIsChecked(t *testing.T) {
	for _, value := range []string{
		"openai", "openai=proxy.example", "nobody=https://proxy.example", "openai=ftp://proxy.example",
	} {
		_, stderr, code := runCommand(t, nil, "server", "--data", t.TempDir(), "--provider-base-url", value)
		if code != 2 {
			t.Errorf("%s: exit code %d, %s", value, code, stderr)
		}
	}
}
