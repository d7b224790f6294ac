//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
)

// chat returns the documented chat call, with a function call in its answer.
func chat() map[string]any {
	const text = `{
		"function_name": "openai.ChatCompletion.create",
		"provider_type": "openai",
		"kwargs": {
			"model": "gpt-4-0613",
			"messages": [
				{"role": "system", "content": "You look things up."},
				{"role": "user", "content": "Weather in Boston?"}
			],
			"functions": [{
				"name": "get_weather",
				"parameters": {"type": "object", "properties": {"city": {"type": "string"}}}
			}],
			"function_call": "auto",
			"api_key": "sk-the-provider-key-of-the-app"
		},
		"request_response": {
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1687000000, "model": "gpt-4-0613-answered",
			"choices": [{"index": 0, "finish_reason": "function_call", "message": {"role": "assistant", "content": null,
				"function_call": {"name": "get_weather", "arguments": "{\"city\": \"Boston\"}"}}}],
			"usage": {"prompt_tokens": 82, "completion_tokens": 18, "total_tokens": 100}
		},
		"request_start_time": 1687000000.25,
		"request_end_time": 1687000001.5,
		"tags": ["weather", "prod"],
		"an_unknown_field": {"kept": [1, 2.50, 1e400]}
	}`

	return decode(text)
}

// completion returns the documented completion call.
func completion() map[string]any {
	return decode(`{
		"function_name": "openai.Completion.create",
		"kwargs": {"engine": "text-davinci-003", "prompt": "My name is"},
		"request_response": {
			"id": "cmpl-1", "object": "text_completion", "created": 1656464820, "model": "text-davinci-003",
			"choices": [{"text": " Sam", "index": 0, "logprobs": null, "finish_reason": "stop"}]
		},
		"request_start_time": 1656464820.0,
		"request_end_time": 1656464822.0,
		"prompt_id": "name-giver", "prompt_input_variables": {"name": "Sam"}, "prompt_version": 1
	}`)
}

// decode parses JSON and keeps numbers as they are written.
func decode(text string) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	m := map[string]any{}
	if err := d.Decode(&m); err != nil {
		panic(err)
	}
	return m
}

// greeting returns the body that publishes a chat template.
func greeting(text string, labels ...string) map[string]any {
	return map[string]any{
		"prompt_template": map[string]any{"prompt_name": "team/greet", "tags": []string{"demo"}},
		"prompt_version": map[string]any{
			"prompt_template": map[string]any{"type": "chat", "messages": []any{
				map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}},
			}},
			"commit_message": "say " + text,
			"metadata": map[string]any{"model": map[string]any{
				"provider": "openai", "name": "gpt-4o", "parameters": map[string]any{"temperature": 0.5},
			}},
		},
		"release_labels": labels,
	}
}

func TestACallOnLocalhostBecomesARecordOnTheServer(t *testing.T) {
	server := startServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := startSidecar(t, t.TempDir(), server.addr)

	created := sidecar.call("POST", "/rest/prompt-templates", greeting("Hello {name}", "prod"), "X-API-KEY", adminKey)
	if created.Status != 201 || created.JSON["version_number"] != json.Number("1") {
		t.Fatalf("publishing through the sidecar: %d %s", created.Status, created.Body)
	}
	id := sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.track("/rest/track-score", adminKey, map[string]any{"request_id": id, "score": 87.0})
	sidecar.track("/library-track-score", adminKey, map[string]any{"request_id": id, "score": 3, "name": "tone"})
	sidecar.track("/rest/track-metadata", adminKey, map[string]any{
		"request_id": id, "metadata": map[string]string{"user_id": "u1", "location": "Boston"},
	})
	sidecar.track("/rest/track-prompt", adminKey, map[string]any{
		"request_id": id, "prompt_name": "team/greet", "label": "prod",
		"prompt_input_variables": map[string]any{"name": "Ann"},
	})

	group := sidecar.call("POST", "/rest/create-group", map[string]any{"api_key": adminKey}).JSON["id"]
	sidecar.track("/rest/track-group", adminKey, map[string]any{"request_id": id, "group_id": group})

	got := server.record(id, events(6))
	want := wire.Record{
		Success:      true,
		ID:           id,
		RequestID:    id,
		FunctionName: "openai.ChatCompletion.create",
		Provider:     "openai",
		Model:        "gpt-4-0613-answered",
		InputTokens:  pointer(int64(82)),
		OutputTokens: pointer(int64(18)),
		Tokens:       pointer(int64(100)),
		LatencyMS:    pointer(1250.0),
		Status:       "SUCCESS",
		FinishReason: "function_call",
		ToolNames:    []string{"get_weather"},
		Readable:     true,

		InputExcerpt:  "Weather in Boston?",
		OutputExcerpt: `get_weather {"city": "Boston"}`,

		Tags:     []string{"weather", "prod"},
		Metadata: map[string]string{"user_id": "u1", "location": "Boston"},
		Scores:   []wire.Score{{Name: "default", Score: 87}, {Name: "tone", Score: 3}},
		Prompt: &wire.RecordPrompt{
			Name:           "team/greet",
			Version:        pointer(1),
			Label:          pointer("prod"),
			InputVariables: json.RawMessage(`{"name":"Ann"}`),
		},
		GroupIDs: []string{group.(string)},

		// Compared below, or by other tests.
		StartTime:  got.StartTime,
		EndTime:    got.EndTime,
		ListTime:   *got.StartTime,
		AcceptedAt: got.AcceptedAt,
		Request:    got.Request,
		Events:     got.Events,
		Blueprint:  got.Blueprint,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
	if s := got.StartTime.Format("2006-01-02T15:04:05.000Z"); s != "2023-06-17T11:06:40.250Z" {
		t.Errorf("start %s", s)
	}
	for _, e := range got.Events {
		if e.Sidecar != "pod-1" || e.ArrivedAt.Before(e.AcceptedAt) {
			t.Errorf("event %+v", e)
		}
	}

	// The request was kept as it was sent, without its secrets.
	logged := string(got.Request)
	for _, kept := range []string{
		`"an_unknown_field":{"kept":[1,2.50,1e400]}`, `"arguments":"{\"city\": \"Boston\"}"`,
	} {
		if !strings.Contains(logged, kept) {
			t.Errorf("%s is not in the logged request %s", kept, logged)
		}
	}
	if strings.Contains(logged, adminKey) || strings.Contains(logged, "sk-the-provider") {
		t.Errorf("a secret is in %s", logged)
	}

	second := sidecar.track("/rest/track-request", adminKey, completion())
	rec := server.record(second, events(1))
	prompted := rec.Prompt.Name == "name-giver" && *rec.Prompt.Version == 1
	if rec.Model != "text-davinci-003" || rec.InputTokens != nil || *rec.LatencyMS != 2000 || !prompted {
		t.Errorf("the completion: %+v", rec)
	}

	for _, n := range []*node{sidecar, server} {
		if r := n.get("/api/public/v2/requests/" + id); r.Status != 200 || r.JSON["request_id"] != id {
			t.Errorf("reading through %s: %d %s", n.addr, r.Status, r.Body)
		}
		tagged := map[string]any{"filter_group": map[string]any{"filters": []any{
			map[string]any{"field": "tags", "operator": "contains", "value": "weather"},
		}}}
		if all, some := n.total(nil), n.total(tagged); all != 2 || some != 1 {
			t.Errorf("searching through %s: %d in all, %d tagged", n.addr, all, some)
		}
	}

	// No secret is left where it was not needed.
	sidecar.stop()
	server.stop()
	for _, secret := range []string{adminKey, "sk-the-provider"} {
		if files := filesHolding(t, server.data, secret); files != nil {
			t.Errorf("the server's folder holds a secret in %v", files)
		}
		for _, f := range filesHolding(t, sidecar.data, secret) {
			if !strings.HasPrefix(f, sidecar.data+"/keys/") {
				t.Errorf("the sidecar's folder holds a secret in %v", f)
			}
		}
		if strings.Contains(server.logged()+sidecar.logged(), secret) {
			t.Error("a secret was logged")
		}
	}
}

func pointer[T any](v T) *T { return &v }
