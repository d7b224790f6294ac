package main

import (
	"net/http"
	"strings"
	"testing"
)

// hostile drives a terminal in each way: it clears the screen, rings, turns the direction of text, begins a line anew, and makes a link.
const hostile = `\u001b[2J\u0007\u202e\u0000\r\u009b31m\u001b]8;;http://x\u001b\\`

// TestNoCommandLetsDataDriveTheTerminal gives every command that shows data an answer in which each text is hostile.
func TestNoCommandLetsDataDriveTheTerminal(t *testing.T) {
	withoutVariables(t)
	h := `"` + hostile + `"`
	row := `{"request_id":` + h + `,"accepted_at":"2026-03-01T12:00:00Z","engine":` + h + `,"function_name":` + h + `,"provider_type":` + h + `,"status":` + h + `,"tags_array":[` + h + `],
		"prompt_name":` + h + `,"scores":[{"name":` + h + `,"score":1}],"metadata":[{"key":` + h + `,"value":` + h + `}],"sidecar":` + h + `}`
	call := `{"kwargs":{"model":` + h + `,"messages":[{"role":` + h + `,"name":` + h + `,"content":` + h + `,"tool_call_id":` + h + `}]},
		"request_response":{"choices":[{"message":{"role":"assistant","content":` + h + `,"tool_calls":[{"id":` + h + `,"function":{"name":` + h + `,"arguments":` + h + `}}]}}]}}`
	record := `{"success":true,"request_id":` + h + `,"function_name":` + h + `,"provider":` + h + `,"model":` + h + `,"status":` + h + `,"error_type":` + h + `,"finish_reason":` + h + `,"tags":[` + h + `],
		"metadata":{` + h + `:` + h + `},"scores":[{"name":` + h + `,"score":1}],"prompt":{"name":` + h + `,"label":` + h + `},"group_ids":[` + h + `],
		"events":[{"id":` + h + `,"kind":` + h + `,"sidecar":` + h + `}],"request":` + call + `}`
	totals := `{"requests":1,"errors":1,"scores":[{"name":` + h + `,"count":1}],"latency":{}}`
	sums := `{"success":true,"overall":` + totals + `,"byModel":{` + h + `:` + totals + `},"byProvider":{` + h + `:` + totals + `},"stats":[{"date":` + h + `,"requests":1}],
		"modelRequestsByDay":{` + h + `:[[` + h + `,1]]},"versions":[{"template":` + h + `,"version":1,"requests":1,"series":[{"date":` + h + `}]}]}`
	backtest := strings.ReplaceAll(`{"request_id":`+h+`,"input_variables":{`+h+`:`+h+`},"sent":{"model":`+h+`,"scores":[{"name":`+h+`,"score":1}],"request":`+call+`},"error":`+h+`}`, "\n", " ")
	rendered := strings.Replace(backtest, `"error":`+h, `"rendered":{"version":2,"warning":`+h+`,"prompt_template":{"messages":[{"role":`+h+`,"content":`+h+`}]},"llm_kwargs":null}`, 1)
	orphans := `{"success":true,"total":1,"items":[{"request_id":` + h + `,"kinds":[` + h + `]}]}`
	for _, c := range []struct {
		answer string
		args   []string
	}{
		{`{"success":true,"total":5,"next_cursor":` + h + `,"items":[` + row + `]}`, []string{"requests", "search"}},
		{record, []string{"requests", "get", "r"}},
		{sums, []string{"requests", "stats"}},
		{sums, []string{"requests", "stats", "--by", "model"}},
		{sums, []string{"requests", "stats", "--by", "provider"}},
		{orphans, []string{"requests", "orphans"}},
		{backtest + "\n" + rendered + "\n", []string{"templates", "backtest", "t"}},
		{`{"success":true,"records":1,"events":1,"request_id":` + h + `}`, []string{"requests", "delete", "r", "--yes"}},
		{`{"success":true,"seen":1,"done":true,"cursor":` + h + `}`, []string{"requests", "reprice"}},
		{`{"success":true,"found":1,"done":true,"kinds":{` + h + `:1},"items":[{"request_id":` + h + `,"kind":` + h + `,"path":` + h + `,"begins":` + h + `}]}`, []string{"requests", "scan"}},
		{`{"success":true,"items":[{"id":7,"prompt_name":` + h + `,"labels":[{"name":` + h + `}],"tags":[` + h + `]}]}`, []string{"templates", "list"}},
		{`{"success":true,"id":7,"prompt_name":` + h + `,"release_labels":[` + h + `],"tags":[` + h + `],"commit_message":` + h + `,"prompt_template":{` + h + `:` + h + `}}`, []string{"templates", "show", "t"}},
	} {
		url, _ := answering(t, c.answer)
		for _, form := range []string{"table", "json"} {
			got := say(t, append(c.args, "-o", form, "--url", url, "--key", "k")...)
			if got.Code != 0 || got.Out == "" {
				t.Errorf("%v as %s: %+v", c.args, form, got)
			}
			for _, r := range got.Out + got.Err {
				if r != '\n' && drivesTerminal(r) {
					t.Errorf("%v as %s lets %q through:\n%q", c.args, form, r, got.Out)
					break
				}
			}
		}
	}
}

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
