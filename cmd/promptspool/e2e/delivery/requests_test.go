//go:build linux

package delivery

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// TestFindingAndCounting logs calls through a sidecar and makes every query that it
// passes on to its server.
func TestFindingAndCounting(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	publish := func(text string) {
		body := json.RawMessage(`{"prompt_template":{"prompt_name":"greet"},"prompt_version":{"prompt_template":
			{"type":"chat","messages":[{"role":"user","content":[{"type":"text","text":"` + text + `"}]}]},` +
			`"metadata":{"model":{"provider":"openai","name":"gpt-4o-mini","parameters":{}}}}}`)
		sidecar.Call("POST", "/rest/prompt-templates", body, "X-API-KEY", harness.AdminKey)
	}

	publish("Hello {name}")
	publish("Good day {name}")
	var ids []string
	started := time.Now().Unix() // lists go by it
	for i := range 4 {
		ids = append(ids, sidecar.Track("/rest/track-request", harness.AdminKey, map[string]any{
			"function_name":      "openai.chat.completions.create",
			"request_start_time": started,
			"request_end_time":   started + 1,
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
		server.Record(id, harness.Events(1))
	}

	ask := func(method, path string, body any, into any) harness.Reply {
		t.Helper()
		r := sidecar.Call(method, path, body, "X-API-KEY", harness.AdminKey)
		if into != nil {
			if err := json.Unmarshal(r.Body, into); err != nil || r.Status != http.StatusOK {
				t.Fatalf("%s %s: %d %s", method, path, r.Status, r.Body)
			}
		}
		return r
	}

	askForALine(t, ask, ids)

	tested := ask("POST", "/rest/backtest", map[string]any{"prompt_name": "greet", "version": 2, "last": 2}, nil)
	lines := strings.Split(strings.TrimSpace(string(tested.Body)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"Good day Ann"`) || !strings.Contains(lines[0], `"Hello Ann"`) {
		t.Errorf("backtest: %d %s", tested.Status, tested.Body)
	}

	var deleted wire.Deleted
	ask("DELETE", "/api/public/v2/requests?metadata_key=user_id&metadata_value=u1", nil, &deleted)
	if deleted.Records != 2 || server.Total(map[string]any{}) != 2 {
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

// askForALine checks that a filter line narrows whatever takes a filter.
func askForALine(t *testing.T, ask func(method, path string, body, into any) harness.Reply, ids []string) {
	t.Helper()
	const line = `status:success template:greet@1 user_id:u1 Hi -refund since:today`
	const zone = "Pacific/Kiritimati"
	requests := "/api/public/v2/requests/"

	var page wire.SearchPage
	ask("POST", requests+"search", map[string]any{"filter": line, "tz": zone}, &page)
	if page.Total != 2 {
		t.Errorf("a line finds %d requests, want 2", page.Total)
	}
	narrow := map[string]any{"filter": line, "tz": zone, "filter_group": map[string]any{
		"field": "request_id", "operator": "is", "value": ids[1],
	}}
	if ask("POST", requests+"search", narrow, &page); page.Total != 1 {
		t.Errorf("a line and a filter find %d requests, want 1", page.Total)
	}
	if ask("POST", requests+"search", map[string]any{"filter": "-" + line}, &page); page.Total != 0 {
		t.Errorf("a negated line finds %d requests", page.Total)
	}

	var sums wire.Analytics
	if ask("POST", requests+"analytics", map[string]any{"filter": line, "tz": zone}, &sums); sums.TotalRequests != 2 {
		t.Errorf("a line sums up %d requests, want 2", sums.TotalRequests)
	}
	byDay := map[string]any{"filter": line, "tz": zone, "bucket": "day"}
	today := time.Now().UTC().Add(14 * time.Hour).Format(time.DateOnly) // there
	if ask("POST", requests+"analytics", byDay, &sums); len(sums.Stats) != 1 || sums.Stats[0].Date != today {
		t.Errorf("the requests of %s are those of %+v", today, sums.Stats)
	}
	var versions wire.TemplateStatistics
	ask("POST", requests+"template-statistics", map[string]any{"filter": "user_id:u0"}, &versions)
	if len(versions.Versions) != 1 || versions.Versions[0].Requests != 2 {
		t.Errorf("a line compares %+v", versions.Versions)
	}
	var suggested wire.Suggestions
	ask("GET", requests+"suggestions?field=metadata_values&metadata_key=user_id&filter=user_id:u1+Hi", nil, &suggested)
	if !slices.Equal(suggested.Values, []string{"u1"}) {
		t.Errorf("a line narrows the suggestions to %v", suggested.Values)
	}
	exported := ask("POST", requests+"export", map[string]any{"filter": line, "tz": zone}, nil)
	if n := strings.Count(string(exported.Body), `"user_id":"u1"`); n != 2 || exported.Status != http.StatusOK {
		t.Errorf("a line exports %d requests, want 2: %s", n, exported.Body)
	}
	again := map[string]any{"prompt_name": "greet", "filter": "user_id:u1 Hi"}
	tested := ask("POST", "/rest/backtest", again, nil)
	if n := strings.Count(string(tested.Body), `"request_id"`); n != 2 || tested.Status != http.StatusOK {
		t.Errorf("a line tests %d requests, want 2: %s", n, tested.Body)
	}

	for _, body := range []map[string]any{{"filter": "é latency:fast"}, {"filter": "a", "tz": "Moon"}} {
		wrong := ask("POST", requests+"search", body, nil)
		place := `"field":"filter","reason":"is wrong at character 11: latency takes a time with its unit, as in 2s, ` +
			`500ms or 1m30s","offset":10}`
		if wrong.Status != 422 || body["tz"] == nil && !strings.Contains(string(wrong.Body), place) {
			t.Errorf("%v: %d %s", body, wrong.Status, wrong.Body)
		}
	}
}
