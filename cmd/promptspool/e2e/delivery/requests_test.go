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

// Calls are logged through a sidecar, and a filter line narrows every query that it passes on to
// its server.
func TestALineNarrowsEveryQuery(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	sidecar.Call("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}"), "X-API-KEY", harness.AdminKey)
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
				"choices": []any{map[string]any{
					"message": map[string]any{"role": "assistant", "content": "Hi"}, "finish_reason": "stop",
				}},
			},
			"metadata":               map[string]any{"user_id": fmt.Sprintf("u%d", i%2)},
			"prompt_id":              "team/greet",
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

	const line = `status:success template:team/greet@1 user_id:u1 Hi -refund since:today`
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
	var versions wire.Statistics
	ask("POST", requests+"statistics", map[string]any{"filter": "user_id:u0"}, &versions)
	if len(versions.Items) != 1 || versions.Items[0].Requests != 2 {
		t.Errorf("a line compares %+v", versions.Items)
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
	again := map[string]any{"prompt_name": "team/greet", "filter": "user_id:u1 Hi"}
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
