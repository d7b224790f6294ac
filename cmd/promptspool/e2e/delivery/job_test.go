//go:build linux

package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

func TestACallOnLocalhostBecomesARecordOnTheServer(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)

	created := sidecar.Call("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}", "prod"),
		"X-API-KEY", harness.AdminKey)
	if created.Status != 201 || created.JSON["version_number"] != json.Number("1") {
		t.Fatalf("publishing through the sidecar: %d %s", created.Status, created.Body)
	}
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Track("/rest/track-score", harness.AdminKey, map[string]any{"request_id": id, "score": 87.0})
	sidecar.Track("/library-track-score", harness.AdminKey,
		map[string]any{"request_id": id, "score": 3, "name": "tone"})
	sidecar.Track("/rest/track-metadata", harness.AdminKey, map[string]any{
		"request_id": id, "metadata": map[string]string{"user_id": "u1", "location": "Boston"},
	})
	sidecar.Track("/rest/track-prompt", harness.AdminKey, map[string]any{
		"request_id": id, "prompt_name": "team/greet", "label": "prod",
		"prompt_input_variables": map[string]any{"name": "Ann"},
	})

	group := sidecar.Call("POST", "/rest/create-group", map[string]any{"api_key": harness.AdminKey}).JSON["id"]
	sidecar.Track("/rest/track-group", harness.AdminKey, map[string]any{"request_id": id, "group_id": group})

	got := server.Record(id, harness.Events(6))
	want := wire.Record{
		Success:      true,
		ID:           id,
		RequestID:    id,
		FunctionName: "openai.ChatCompletion.create",
		Provider:     "openai",
		Model:        "gpt-4-0613-answered",
		InputTokens:  new(int64(82)),
		OutputTokens: new(int64(18)),
		Tokens:       new(int64(100)),
		LatencyMS:    new(1250.0),
		Status:       "SUCCESS",
		FinishReason: "function_call",
		ToolNames:    []string{"get_weather"},
		Readable:     true,

		InputExcerpt:  "Weather in Boston?",
		OutputExcerpt: `get_weather {"city": "Boston"}`,

		Tags:     []string{"weather", "prod"},
		Metadata: map[string]string{"user_id": "u1", "location": "Boston"},
		UserID:   "u1",
		Scores:   []wire.Score{wire.IntegerScore("default", 87), wire.IntegerScore("tone", 3)},
		Prompt: &wire.RecordPrompt{
			Name:           "team/greet",
			Version:        new(1),
			Label:          new("prod"),
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
		Output:     got.Output,
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
	if strings.Contains(logged, harness.AdminKey) || strings.Contains(logged, "sk-the-provider") {
		t.Errorf("a secret is in %s", logged)
	}

	for _, n := range []*harness.Node{sidecar, server} {
		if r := n.Get("/api/public/v2/requests/" + id); r.Status != 200 || r.JSON["request_id"] != id {
			t.Errorf("reading through %s: %d %s", n.Addr, r.Status, r.Body)
		}
		if all := n.Total(nil); all != 1 {
			t.Errorf("searching through %s: %d", n.Addr, all)
		}
	}

	// No secret is left where it was not needed.
	sidecar.Stop()
	server.Stop()
	for _, secret := range []string{harness.AdminKey, "sk-the-provider"} {
		if files := harness.FilesHolding(t, server.Data, secret); files != nil {
			t.Errorf("the server's folder holds a secret in %v", files)
		}
		for _, f := range harness.FilesHolding(t, sidecar.Data, secret) {
			if !strings.HasPrefix(f, sidecar.Data+"/keys/") {
				t.Errorf("the sidecar's folder holds a secret in %v", f)
			}
		}
		if strings.Contains(server.Logged()+sidecar.Logged(), secret) {
			t.Error("a secret was logged")
		}
	}
}
