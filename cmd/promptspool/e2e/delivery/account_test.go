//go:build linux

package delivery

import (
	"net/http"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// TestAnotherAccountSeesNothing calls every route that names something of an account,
// with a full key of another account.
func TestAnotherAccountSeesNothing(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	publish := `{"prompt_template":{"prompt_name":"greet"},"prompt_version":{"prompt_template":
		{"type":"chat","messages":[{"role":"user","content":[{"type":"text","text":"secret"}]}]}},` +
		`"release_labels":["prod"]}`
	if r := server.Call("POST", "/rest/prompt-templates", publish, "X-API-KEY", harness.AdminKey); r.Status >= 300 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	call := harness.With(harness.With(harness.Chat(), "metadata", map[string]string{"user": "ann"}), "tags",
		[]string{"hidden-tag"})
	id := server.Track("/rest/track-request", harness.AdminKey, call)

	made, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", server.Data,
		"--account", "other", "--scope", "full", "-o", "json")
	if code != 0 {
		t.Fatal(made, errs)
	}
	_, rest, _ := strings.Cut(made, `"key": "`)
	key, _, _ := strings.Cut(rest, `"`)

	fields := map[string]map[string]any{
		"POST /prompts/greet/label":          {"name": "x", "prompt_version_number": 1},
		"PATCH /prompt-labels/1":             {"prompt_version_number": 1},
		"PATCH /rest/prompt-templates/greet": {"commit_message": "m", "release_labels": []string{"x"}},
		"POST /rest/backtest":                {"prompt_name": "greet", "version": 1},
	}
	for path, want := range map[string]int{
		"GET /api/public/v2/requests/" + id:         404,
		"POST /prompt-templates/greet":              404,
		"GET /prompt-templates/greet":               404,
		"GET /prompt-templates/greet/labels":        404,
		"POST /prompts/greet/label":                 404,
		"PATCH /prompt-labels/1":                    404,
		"DELETE /prompt-labels/1":                   404,
		"PATCH /rest/prompt-templates/greet":        404,
		"DELETE /rest/prompt-templates/greet":       404,
		"POST /rest/prompt-templates/greet/restore": 404,
		"POST /rest/backtest":                       404,

		// What lists or counts finds nothing, and a deletion deletes nothing of another
		// account's.
		"POST /api/public/v2/requests/search":                                 200,
		"POST /api/public/v2/requests/analytics":                              200,
		"POST /api/public/v2/requests/template-statistics":                    200,
		"POST /api/public/v2/requests/reprice":                                200,
		"POST /api/public/v2/requests/reread":                                 200,
		"POST /api/public/v2/requests/scan":                                   200,
		"POST /api/public/v2/requests/export":                                 200,
		"GET /api/public/v2/requests/suggestions?field=tags":                  200,
		"GET /api/public/v2/requests/orphans":                                 200,
		"GET /prompt-templates":                                               200,
		"DELETE /api/public/v2/requests/" + id:                                200,
		"DELETE /api/public/v2/requests?metadata_key=user&metadata_value=ann": 200,
	} {
		method, path, _ := strings.Cut(path, " ")
		sent := fields[method+" "+path]
		if sent == nil {
			sent = map[string]any{}
		}
		r := server.Call(method, path, sent, "X-API-KEY", key)
		body := string(r.Body)
		leaks := strings.Contains(body, "secret") || strings.Contains(body, "hidden-tag") ||
			strings.Contains(body, `"records":1`)
		if r.Status != want || leaks {
			t.Errorf("%s %s: %d %s", method, path, r.Status, body)
		}
	}

	stillThere := server.Get("/prompt-templates/greet").Status == http.StatusOK
	if r := server.Record(id, harness.Events(1)); r.RequestID != id || !stillThere {
		t.Error("another account deleted something")
	}
}
