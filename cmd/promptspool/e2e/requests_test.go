package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"promptspool/api/wire"
)

// TestFindingAndCounting logs calls through a sidecar and makes every query that it
// passes on to its server.
func TestFindingAndCounting(t *testing.T) {
	t.Parallel()
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := startSidecar(t, t.TempDir(), server.addr)
	publish := func(text string) {
		body := json.RawMessage(`{"prompt_template":{"prompt_name":"greet"},"prompt_version":{"prompt_template":
			{"type":"chat","messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"}]}]},` +
			`"metadata":{"model":{"provider":"openai","name":"gpt-4o-mini","parameters":{}}}}}`)
		sidecar.call("POST", "/rest/prompt-templates", body, "X-API-KEY", adminKey)
	}

	publish("Hello {name}")
	publish("Good day {name}")
	var ids []string
	for i := range 4 {
		ids = append(ids, sidecar.track("/rest/track-request", adminKey, map[string]any{
			"function_name":      "openai.chat.completions.create",
			"request_start_time": 1795224000,
			"request_end_time":   1795224001,
			"kwargs": map[string]any{
				"model": "gpt-4o-mini", "messages": []any{map[string]any{"role": "user", "content": "Hello Ann"}},
			},
			"request_response": map[string]any{
				"model": "gpt-4o-mini-2024-07-18",
				"choices": []any{map[string]any{
					"message": map[string]any{"role": "assistant", "content": "Hi"}, "finish_reason": "stop",
				}},
				"usage": map[string]any{"prompt_tokens": 1000, "completion_tokens": 100},
			},
			"metadata":               map[string]any{"user_id": fmt.Sprintf("u%d", i%2)},
			"prompt_id":              "greet",
			"prompt_version":         1,
			"prompt_input_variables": map[string]any{"name": "Ann"},
		}))
	}

	for _, id := range ids {
		server.record(id, events(1))
	}

	ask := func(method, path string, body any, into any) reply {
		t.Helper()
		r := sidecar.call(method, path, body, "X-API-KEY", adminKey)
		if into != nil {
			if err := json.Unmarshal(r.Body, into); err != nil || r.Status != http.StatusOK {
				t.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
			}
		}
		return r
	}

	var suggested wire.Suggestions
	const fields = "field=metadata_values&metadata_key=user_id&prefix=U"
	ask("GET", "/api/public/v2/requests/suggestions?"+fields, nil, &suggested)
	if len(suggested.Values) != 2 {
		t.Errorf("suggested %v", suggested.Values)
	}

	var sums wire.Analytics
	ask("POST", "/api/public/v2/requests/analytics", map[string]any{}, &sums)
	if sums.TotalRequests != 4 || sums.TotalCost != 0.00084 || sums.Overall.Unpriced != 0 {
		t.Errorf("analytics: %+v", sums)
	}

	var versions wire.TemplateStatistics
	ask("POST", "/api/public/v2/requests/template-statistics", map[string]any{}, &versions)
	if len(versions.Versions) != 1 || versions.Versions[0].Requests != 4 || *versions.Versions[0].Version != 1 {
		t.Errorf("statistics: %+v", versions)
	}

	tested := ask("POST", "/rest/backtest", map[string]any{"prompt_name": "greet", "version": 2, "last": 2}, nil)
	lines := strings.Split(strings.TrimSpace(string(tested.Body)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"Good day Ann"`) || !strings.Contains(lines[0], `"Hello Ann"`) {
		t.Errorf("backtest: %d %s", tested.Status, tested.Body)
	}

	var priced wire.Repriced
	ask("POST", "/api/public/v2/requests/reprice", map[string]any{}, &priced)
	if priced.Seen != 4 || priced.Changed != 0 || !priced.Done {
		t.Errorf("repriced: %+v", priced)
	}

	var deleted wire.Deleted
	ask("DELETE", "/api/public/v2/requests?metadata_key=user_id&metadata_value=u1", nil, &deleted)
	if deleted.Records != 2 || server.total(map[string]any{}) != 2 {
		t.Errorf("deleted %+v", deleted)
	}
	ask("DELETE", "/api/public/v2/requests/"+ids[0], nil, &deleted)
	if deleted.Records != 1 {
		t.Errorf("deleted %+v", deleted)
	}

	for path, want := range map[string]int{
		"GET /api/public/v2/requests/suggestions":                           422,
		"GET /api/public/v2/requests/suggestions?field=nonsense":            422,
		"GET /api/public/v2/requests/suggestions?field=tags&filter_group=x": 422,
		"GET /api/public/v2/requests/suggestions?field=tags&filter_group=" +
			`{"logic":"AND","filters":7}`: 422,
		"DELETE /api/public/v2/requests":                422,
		"DELETE /api/public/v2/requests?metadata_key=a": 422,
		"DELETE /api/public/v2/requests/17":             422,
		"POST /rest/backtest":                           400,
	} {
		method, path, _ := strings.Cut(path, " ")
		if r := ask(method, path, nil, nil); r.Status != want || !strings.Contains(string(r.Body), `"success":false`) {
			t.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
		}
	}
	if r := ask("POST", "/rest/backtest", map[string]any{"prompt_name": "nobody"}, nil); r.Status != 404 {
		t.Errorf("a backtest of no template: %d %s", r.Status, r.Body)
	}
}
