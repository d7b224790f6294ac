//go:build linux

package delivery

import (
	"net/http"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestPreloadedTemplatesOutliveTheServer(t *testing.T) {
	t.Parallel()
	server := harness.Launch(t, t.TempDir(), "127.0.0.1:0",
		"server", "--name", "central", "--provider-base-url", "openai=https://proxy.example/v1")
	for _, text := range []string{"one", "two"} {
		if r := server.Call("POST", "/rest/prompt-templates", map[string]any{
			"prompt_template": map[string]any{"prompt_name": "a/greeting"}, "release_labels": []string{text},
			"prompt_version": map[string]any{"prompt_template": map[string]any{"type": "completion", "content": text},
				"metadata": map[string]any{"model": map[string]any{"provider": "openai", "name": "gpt-4o"}}},
		}, "X-API-KEY", harness.AdminKey); r.Status != http.StatusCreated {
			t.Fatalf("publish: %d %s", r.Status, r.Body)
		}
	}
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr,
		"--api-key", harness.AdminKey, "--template-preload", "a/greeting", "--template-preload", "label:one")
	sidecar.Eventually(func() bool {
		res, err := http.Get("http://" + sidecar.Ops + "/startupz")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, func() string { return "the sidecar does not report that it has started" })

	server.Kill()
	for label, want := range map[string]string{"": "two", "one": "one"} {
		r := sidecar.Call("POST", "/prompt-templates/a/greeting", map[string]any{"label": label})
		kwargs, _ := r.JSON["llm_kwargs"].(map[string]any)
		through, _ := r.JSON["provider_base_url"].(map[string]any)
		if r.Status != http.StatusOK || kwargs["prompt"] != want || through["url"] != "https://proxy.example/v1" {
			t.Errorf("label %q: %d %s, want %s", label, r.Status, r.Body, want)
		}
	}
}

func TestAProviderBaseURLIsChecked(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"openai", "openai=proxy.example", "nobody=https://proxy.example", "openai=ftp://proxy.example",
	} {
		_, stderr, code := harness.RunWith(t, nil, "server", "--data", t.TempDir(), "--provider-base-url", value)
		if code != 2 {
			t.Errorf("%s: exit code %d, %s", value, code, stderr)
		}
	}
}
