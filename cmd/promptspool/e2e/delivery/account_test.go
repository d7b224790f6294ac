//go:build linux

package delivery

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/api/wire"
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
	const hidden = "5ec7e75ec7e75ec7e75ec7e75ec7e701"
	call = harness.With(harness.With(call, "session_id", "chat-9"), "trace_id", hidden)
	id := server.Track("/rest/track-request", harness.AdminKey, call)

	server.Call("PUT", "/api/public/v2/score-definitions/a", `{"kind":"number","description":"secret"}`,
		"X-API-KEY", harness.AdminKey)
	server.Call("PUT", "/api/public/v2/views/a", `{"address":"/requests?filter=secret"}`,
		"X-API-KEY", harness.AdminKey)

	server.Call("PUT", "/api/public/v2/targets/a", `{"kind":"slack","url":"https://secret.example"}`,
		"X-API-KEY", harness.AdminKey)
	server.Call("PUT", "/api/public/v2/alerts/a", `{"measure":"cost","when":"above","threshold":1,`+
		`"filter":"tag:secret"}`, "X-API-KEY", harness.AdminKey)

	key := createKey(t, server, "other", "full")

	fields := map[string]map[string]any{
		"POST /prompts/greet/label":               {"name": "x", "prompt_version_number": 1},
		"PATCH /prompt-labels/1":                  {"prompt_version_number": 1},
		"PATCH /rest/prompt-templates/greet":      {"commit_message": "m", "release_labels": []string{"x"}},
		"POST /rest/backtest":                     {"prompt_name": "greet", "version": 1},
		"POST /api/public/v2/requests/statistics": {"by": "version", "prompt_name": "greet", "compare": []int{1, 2}},
		"POST /api/public/v2/alerts/test":         {"name": "a", "measure": "cost", "when": "above", "threshold": 1},
	}
	for path, want := range map[string]int{
		"GET /api/public/v2/requests/" + id:         404,
		"GET /api/public/v2/sessions/chat-9":        404,
		"GET /api/public/v2/traces/" + hidden:       404,
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
		"DELETE /api/public/v2/score-definitions/a": 404,
		"DELETE /api/public/v2/views/a":             404,
		"DELETE /api/public/v2/targets/a":           404,
		"POST /api/public/v2/targets/a/test":        404,
		"POST /api/public/v2/targets/a/replay":      404,
		"POST /api/public/v2/targets/a/discard":     404,
		"GET /api/public/v2/targets/a/deliveries":   404,
		"DELETE /api/public/v2/alerts/a":            404,

		// What lists or counts finds nothing, and a deletion deletes nothing of another
		// account's.
		"POST /api/public/v2/requests/search":                                 200,
		"POST /api/public/v2/sessions/search":                                 200,
		"POST /api/public/v2/spans/search":                                    200,
		"POST /api/public/v2/traces/search":                                   200,
		"POST /api/public/v2/users/search":                                    200,
		"DELETE /api/public/v2/sessions/chat-9":                               200,
		"DELETE /api/public/v2/traces/" + hidden:                              200,
		"POST /api/public/v2/requests/analytics":                              200,
		"POST /api/public/v2/requests/statistics":                             200,
		"POST /api/public/v2/requests/reprice":                                200,
		"POST /api/public/v2/requests/scan":                                   200,
		"POST /api/public/v2/requests/export":                                 200,
		"GET /api/public/v2/requests/suggestions?field=tags":                  200,
		"GET /api/public/v2/requests/orphans":                                 200,
		"GET /prompt-templates":                                               200,
		"GET /api/public/v2/score-definitions":                                200,
		"GET /api/public/v2/views":                                            200,
		"GET /api/public/v2/targets":                                          200,
		"GET /api/public/v2/alerts":                                           200,
		"POST /api/public/v2/alerts/test":                                     200,
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

// createKey makes a key with the command, and returns its secret.
func createKey(t *testing.T, server *harness.Node, project, scope string) string {
	t.Helper()
	made, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", server.Data,
		"--project", project, "--scope", scope, "-o", "json")
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(made), &k); code != 0 || err != nil {
		t.Fatal(made, errs, err)
	}

	return k.Key
}

// TestEachRightReachesItsRoutes calls every route of the description with a key of each right alone.
// It is 403 if the description does not name the right, and never otherwise.
func TestEachRightReachesItsRoutes(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	var description struct {
		Paths map[string]map[string]struct {
			Scope []string `json:"x-scope"`
		}
	}
	if err := json.Unmarshal([]byte(docs.OpenAPI("test", "")), &description); err != nil {
		t.Fatal(err)
	}

	refused, answered := 0, 0
	ident := regexp.MustCompile(`\{\w+\}`)
	for _, right := range wire.ScopeNames {
		key := createKey(t, server, "default", right)
		for path, methods := range description.Paths {
			for method, operation := range methods {
				method = strings.ToUpper(method)
				r := server.Call(method, ident.ReplaceAllString(path, "1"), map[string]any{},
					"X-API-KEY", key, "Content-Type", "application/json")
				allowed, refuses := slices.Contains(operation.Scope, right), r.Status == http.StatusForbidden
				if refuses == allowed || r.Status == http.StatusUnauthorized {
					t.Errorf("%s %s with a key of scope %s: %d %s", method, path, right, r.Status, r.Body)
				}
				if allowed {
					answered++
				} else {
					refused++
				}
			}
		}
	}
	if refused < 150 || answered < 60 {
		t.Errorf("only %d calls were refused, and %d answered", refused, answered)
	}
}
