//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// pythonCall is a call as the hosted service's Python SDK 0.4.8 puts it on the wire. KEY
// stands for the key, ID for the request's id, GROUP for the group's. The SDK reads the
// named members of the answer, and takes any other status for a failure.
type pythonCall struct {
	method, path, body string
	inHeader           bool // the key is sent as X-API-KEY, sometimes beside api_key in the body
	status             int
	reads              string // members, "" for none
}

var pythonCalls = []pythonCall{
	{"POST", "/rest/prompt-templates", `{
		"prompt_template": {
			"prompt_name": "team/py",
			"prompt_template": {"type": "chat", "messages": [{"role": "user",
				"content": [{"type": "text", "text": "Hi {n}"}],
				"input_variables": ["n"], "template_format": "f-string"}]},
			"commit_message": "first", "tags": null,
			"metadata": {"model": {"provider": "openai", "name": "gpt-4", "parameters": {}}},
			"release_labels": ["prod"]
		},
		"prompt_version": {
			"prompt_name": "team/py",
			"prompt_template": {"type": "chat", "messages": [{"role": "user",
				"content": [{"type": "text", "text": "Hi {n}"}],
				"input_variables": ["n"], "template_format": "f-string"}]},
			"commit_message": "first", "tags": null,
			"metadata": {"model": {"provider": "openai", "name": "gpt-4", "parameters": {}}},
			"release_labels": ["prod"]
		},
		"release_labels": ["prod"]}`, true, 201, "id prompt_name prompt_template"},
	{"POST", "/prompt-templates/team/py", `{"api_key": "KEY"}`,
		true, 200, "id prompt_name version prompt_template metadata llm_kwargs"},
	{"POST", "/prompt-templates/team/py", `{
		"api_key": "KEY", "label": "prod", "version": null, "provider": "openai",
		"input_variables": {"n": "Ann"}, "metadata_filters": null}`,
		true, 200, "id version prompt_template metadata llm_kwargs"},
	{"POST", "/prompt-templates/team%2Fpy", `{"api_key": "KEY", "version": 1}`, true, 200, "id version"},
	{"GET", "/prompt-templates?page=1&per_page=30", "", true, 200, "items"},
	{"POST", "/prompt-templates/team/none", `{"api_key": "KEY"}`, true, 404, "message"},
	{"GET", "/library-get-prompt-template?prompt_name=team/py&version=&label=", "",
		true, 200, "prompt_template metadata"},
	{"POST", "/library-publish-prompt-template", `{
		"prompt_name": "py-old",
		"prompt_template": {
			"type": "completion", "content": [{"type": "text", "text": "Hi {n}"}], "input_variables": ["n"]},
		"tags": ["a"], "api_key": "KEY"}`, false, 200, "id success"},
	{"POST", "/create-group", `{"api_key": "KEY"}`, false, 200, "id"},
	{"POST", "/track-request", `{
		"function_name": "openai.OpenAI.chat.completions.create", "provider_type": "openai", "args": [],
		"kwargs": {"model": "gpt-4", "messages": [{"role": "user", "content": "Hi Ann"}]}, "tags": null,
		"request_response": {
			"id": "c", "object": "chat.completion", "created": 1700000000, "model": "gpt-4-0613",
			"system_fingerprint": null,
			"choices": [{"finish_reason": "stop", "index": 0, "logprobs": null, "message": {
				"content": "hey", "role": "assistant", "function_call": null, "tool_calls": null}}],
			"usage": {"completion_tokens": 1, "prompt_tokens": 2, "total_tokens": 3}},
		"request_start_time": 1700000000.123456, "request_end_time": 1700000001.5, "metadata": null,
		"prompt_id": null, "prompt_input_variables": null, "prompt_version": null, "group_id": null,
		"return_prompt_blueprint": false, "span_id": null, "api_key": "KEY"}`,
		false, 200, "request_id success"},
	{"POST", "/library-track-prompt", `{
		"request_id": "ID", "prompt_name": "team/py", "prompt_input_variables": {"n": "Ann"}, "api_key": "KEY",
		"version": null, "label": null}`, false, 200, "success"},
	{"POST", "/library-track-metadata", `{"request_id": "ID", "metadata": {"user": "ann"}, "api_key": "KEY"}`,
		false, 200, "success"},
	{"POST", "/library-track-score", `{"request_id": "ID", "score": 100, "name": "tone", "api_key": "KEY"}`,
		false, 200, "success"},
	{"POST", "/library-track-score", `{"request_id": "ID", "score": 7, "api_key": "KEY"}`, false, 200, "success"},
	{"POST", "/track-group", `{"request_id": "ID", "group_id": "GROUP", "api_key": "KEY"}`, false, 200, "success"},
	{"POST", "/track-request", `{
		"function_name": "openai.ChatCompletion.create", "args": [],
		"kwargs": {"engine": "gpt-4", "messages": [{"role": "user", "content": "hello"}], "stream": true},
		"tags": ["s"], "request_response": {"choices": [{"role": "assistant", "content": "hey"}]},
		"request_start_time": 1700000000.1, "request_end_time": 1700000001, "api_key": "KEY"}`,
		false, 200, "request_id"},
	{"POST", "/track-request", `{
		"function_name": "langchain.PromptLayerChatOpenAI",
		"args": [[{"role": "user", "content": "hello"}]], "kwargs": {}, "tags": [],
		"request_response": [{"role": "assistant", "content": "hey"}],
		"request_start_time": 1700000000.1, "request_end_time": 1700000001.1, "api_key": "KEY"}`,
		false, 200, "request_id"},
	{"POST", "/log-request", `{
		"provider": "openai", "model": "gpt-4",
		"input": {"type": "chat", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
		"output": {"type": "chat", "messages": [{"role": "assistant", "content": [{"type": "text", "text": "b"}]}]},
		"request_start_time": 1700000000.5, "request_end_time": 1700000001.5, "parameters": {},
		"tags": [], "metadata": {}, "price": 0.25, "input_tokens": 1, "output_tokens": 1}`, true, 201, "id"},
	{"POST", "/library-track-score", `{"request_id": "ID", "score": 101, "api_key": "KEY"}`,
		false, 422, "message success"},
	{"POST", "/track-request", `{"function_name": "a", "api_key": "nobody's"}`, false, 401, "message success"},
}

func TestWhatThePythonSDKSendsIsAnsweredAsItReads(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	id, group := "", ""
	for i, c := range pythonCalls {
		name := fmt.Sprintf("call %d, %s %s", i, c.method, c.path)
		body := strings.NewReplacer("KEY", harness.AdminKey, `"ID"`, id, "GROUP", group).Replace(c.body)
		if body != "" && !json.Valid([]byte(body)) {
			t.Fatalf("%s: the golden is not JSON: %s", name, body)
		}

		header := []string{"Content-Type", "application/json"}
		if c.inHeader {
			header = append(header, "X-API-KEY", harness.AdminKey)
		}

		r := sidecar.Call(c.method, c.path, body, header...)
		if r.Status != c.status {
			t.Errorf("%s: %d, want %d: %s", name, r.Status, c.status, r.Body)
		}

		for member := range strings.FieldsSeq(c.reads) {
			if r.JSON[member] == nil {
				t.Errorf("%s: the SDK reads %s, which is not in %s", name, member, r.Body)
			}
		}

		if c.status == http.StatusOK && c.path == "/track-request" && id == "" {
			id = fmt.Sprintf("%q", r.JSON["request_id"])
		}
		if c.path == "/create-group" {
			group, _ = r.JSON["id"].(string)
		}
	}

	// Batches come in any order: one complete record does not mean that all have arrived.
	sidecar.Eventually(
		func() bool { return sidecar.Waiting() == 0 },
		func() string { return "the spool does not empty" },
	)
	rec := server.Record(strings.Trim(id, `"`), harness.Events(6))
	if rec.Model != "gpt-4-0613" || *rec.Tokens != 3 || len(rec.Scores) != 2 || rec.Metadata["user"] != "ann" ||
		*rec.Prompt.Version != 1 || rec.GroupIDs[0] != group || rec.StartTime.Nanosecond() != 123456000 {
		t.Errorf("%+v", rec)
	}

	if n := server.Total(nil); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}
