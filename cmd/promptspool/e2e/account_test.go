package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestAnotherAccountSeesNothing asks every route that names something of an account, with a full key of another one.
func TestAnotherAccountSeesNothing(t *testing.T) {
	t.Parallel()
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	if r := server.call("POST", "/rest/prompt-templates", `{"prompt_template":{"prompt_name":"greet"},"prompt_version":{"prompt_template":
		{"type":"chat","messages":[{"role":"user","content":[{"type":"text","text":"secret"}]}]}},"release_labels":["prod"]}`, "X-API-KEY", adminKey); r.Status >= 300 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	id := server.track("/rest/track-request", adminKey, with(with(chat(), "metadata", map[string]string{"user": "ann"}), "tags", []string{"hidden-tag"}))
	made, errs, code := runCommand(t, nil, "keys", "create", "--data", server.data, "--account", "other", "--scope", "full", "-o", "json")
	if code != 0 {
		t.Fatal(made, errs)
	}
	_, rest, _ := strings.Cut(made, `"key": "`)
	key, _, _ := strings.Cut(rest, `"`)
	for path, want := range map[string]int{
		"GET /api/public/v2/requests/" + id: 404, "POST /prompt-templates/greet": 404, "GET /prompt-templates/greet": 404, "GET /prompt-templates/greet/labels": 404,
		"POST /prompts/greet/label": 404, "PATCH /prompt-labels/1": 404, "DELETE /prompt-labels/1": 404, "PATCH /rest/prompt-templates/greet": 404,
		"DELETE /rest/prompt-templates/greet": 404, "POST /rest/prompt-templates/greet/restore": 404, "POST /rest/backtest": 404,
		// What lists or counts finds nothing, and a deletion deletes nothing of somebody else's.
		"POST /api/public/v2/requests/search": 200, "POST /api/public/v2/requests/analytics": 200, "POST /api/public/v2/requests/template-statistics": 200,
		"POST /api/public/v2/requests/reprice": 200, "POST /api/public/v2/requests/scan": 200, "POST /api/public/v2/requests/export": 200, "GET /api/public/v2/requests/suggestions?field=tags": 200,
		"GET /api/public/v2/requests/orphans": 200, "GET /prompt-templates": 200, "DELETE /api/public/v2/requests/" + id: 200,
		"DELETE /api/public/v2/requests?metadata_key=user&metadata_value=ann": 200,
	} {
		method, path, _ := strings.Cut(path, " ")
		r := server.call(method, path, map[string]any{"prompt_name": "greet", "name": "x", "prompt_version_number": 1, "version": 1, "commit_message": "m", "release_labels": []string{"x"}}, "X-API-KEY", key)
		body := string(r.Body)
		if r.Status != want || strings.Contains(body, "secret") || strings.Contains(body, "hidden-tag") || strings.Contains(body, `"records":1`) {
			t.Errorf("%s %s: %d %s", method, path, r.Status, body)
		}
	}
	if r := server.record(id, events(1)); r.RequestID != id || server.get("/prompt-templates/greet").Status != http.StatusOK {
		t.Error("another account took something away")
	}
}
