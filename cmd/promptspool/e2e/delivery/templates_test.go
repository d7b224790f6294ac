//go:build linux

package delivery

import (
	"fmt"
	"net/http"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// TestTemplatesAreEditedThroughASidecar uses every route that changes a template, through
// a sidecar, as an SDK would.
func TestTemplatesAreEditedThroughASidecar(t *testing.T) {
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	do := func(status int, method, path string, body any) map[string]any {
		t.Helper()
		if status == http.StatusNoContent { // without a body
			req, err := http.NewRequest(method, "http://"+sidecar.Addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-API-KEY", harness.AdminKey)
			res, err := http.DefaultClient.Do(req)
			if err != nil || res.StatusCode != status {
				t.Fatalf("%s %s: %v, %v", method, path, res, err)
			}
			_ = res.Body.Close()
			return nil
		}

		r := sidecar.Call(method, path, body, "X-API-KEY", harness.AdminKey)
		if r.Status != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, r.Status, r.Body, status)
		}
		return r.JSON
	}
	text := func(path string, body any) string {
		t.Helper()
		kwargs, _ := do(200, "POST", path, body)["llm_kwargs"].(map[string]any)
		return fmt.Sprint(kwargs["prompt"])
	}
	openai := map[string]any{"model": map[string]any{"provider": "openai", "name": "gpt-3.5-turbo-instruct"}}

	do(200, "POST", "/library-publish-prompt-template", map[string]any{
		"prompt_name": "tone", "prompt_template": map[string]any{"type": "completion", "content": "Be kind."},
	})
	made := do(201, "POST", "/rest/prompt-templates", map[string]any{
		"prompt_template": map[string]any{"prompt_name": "team/greet"},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "completion", "content": "Hi {name}. @@@tone@@@"},
			"metadata":        openai,
		},
	})

	vars := map[string]any{"input_variables": map[string]any{"name": "Ann"}}
	if got := text("/prompt-templates/team/greet", vars); got != "Hi Ann. Be kind." {
		t.Errorf("filled in it says %q", got)
	}

	do(201, "PATCH", "/rest/prompt-templates/team%2Fgreet", map[string]any{
		"content":        map[string]any{"0": map[string]any{"type": "text", "text": "Hello {name}. @@@tone@@@"}},
		"release_labels": []string{"next"},
	})
	label := do(200, "POST", fmt.Sprintf("/prompts/%v/label", made["id"]), map[string]any{
		"name": "prod", "prompt_version_number": 1,
	})

	for label, want := range map[string]string{"prod": "Hi Ann. Be kind.", "next": "Hello Ann. Be kind."} {
		vars["label"] = label
		if got := text("/prompt-templates/team%2Fgreet", vars); got != want {
			t.Errorf("label %s says %q, want %q", label, got, want)
		}
	}

	do(200, "PATCH", fmt.Sprintf("/prompt-labels/%v", label["id"]), map[string]any{"prompt_version_number": 2})
	vars["label"] = "prod"
	if got := text("/prompt-templates/team/greet", vars); got != "Hello Ann. Be kind." {
		t.Errorf("after its move the label says %q", got)
	}

	labels := do(200, "GET", "/prompt-templates/team/greet/labels", nil)
	if list, _ := labels["release_labels"].([]any); len(list) != 2 {
		t.Errorf("labels are %v", labels)
	}

	raw := do(200, "GET", "/prompt-templates/team/greet?resolve_snippets=false&include_llm_kwargs=true", nil)
	if raw["llm_kwargs"] == nil || fmt.Sprint(raw["snippets"]) != "[]" {
		t.Errorf("the source is %v", raw)
	}
	// Removed and archived, and back.
	do(204, "DELETE", fmt.Sprintf("/prompt-labels/%v", label["id"]), nil)
	do(404, "POST", "/prompt-templates/team/greet", vars)
	do(409, "DELETE", "/rest/prompt-templates/tone", nil)
	do(200, "DELETE", "/rest/prompt-templates/team/greet", nil)
	do(404, "POST", "/prompt-templates/team/greet", nil)
	if list := do(200, "GET", "/prompt-templates?status=deleted", nil); fmt.Sprint(list["total"]) != "1" {
		t.Errorf("archived are %v", list)
	}
	do(200, "POST", "/rest/prompt-templates/team/greet/restore", nil)
	do(200, "POST", "/prompt-templates/team/greet", nil)
	do(422, "GET", "/prompt-templates?status=gone", nil)
	do(404, "PATCH", "/prompt-labels/x", map[string]any{"prompt_version_number": 2})
}
