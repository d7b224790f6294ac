//go:build linux

package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// sdkStep is the result of a call of the SDK.
type sdkStep struct {
	Value    any
	Error    string
	Warnings []string
}

// gave returns a member of the value, by its path.
func (s sdkStep) gave(path ...any) any {
	v := s.Value
	for _, p := range path {
		switch at := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[at]
		case int:
			list, _ := v.([]any)
			if at >= len(list) {
				return nil
			}
			v = list[at]
		}
	}
	return v
}

// runSDK runs a script with a published SDK for JavaScript, and returns what it prints.
func runSDK(t *testing.T, script string, env ...string) (out []byte, errs string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", script)
	node.Dir = harness.NPMModules(t, "testdata/sdk")
	node.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	node.Stderr = &stderr
	out, err = node.Output()

	return out, stderr.String(), err
}

// TestThePublishedJavaScriptSDKWorksUnmodified runs promptlayer 1.0.46 as published, with
// nothing but the base URL set.
func TestThePublishedJavaScriptSDKWorksUnmodified(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)

	out, errs, err := runSDK(t, "sdk.mjs",
		"PROMPTLAYER_API_URL=http://"+harness.ComparingProxy(t, sidecar.Addr), "PROMPTLAYER_API_KEY="+harness.AdminKey,
		"OPENAI_BASE_URL="+startProviders(t).URL, "OPENAI_API_KEY=sk-not-a-key")

	var steps map[string]sdkStep
	if err == nil {
		err = json.Unmarshal(out, &steps)
	}
	if err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, out, errs)
	}

	text := func(step string, path ...any) string { return fmt.Sprint(steps[step].gave(path...)) }
	rendered := func(member any) []any { return []any{"llm_kwargs", "messages", 0, member} }
	for _, c := range []struct{ name, got, want string }{
		{"publish", text("publish", "prompt_name") + text("publish", "release_labels"), "team/sdk[prod]"},
		{"publishing another version", text("publishAgain", "version_number"), "2"},
		{"latest", text("latest", rendered("content")...) + text("latest", "version"), "Good day Ann2"},
		{"by label", text("byLabel", rendered("content")...) + text("byLabel", "version"), "Hi Ann1"},
		{"by version", text("byVersion", "prompt_template", "messages", 0, "content", 0, "text") +
			text("byVersion", "commit_message"), "Hi {n}Hi {n}"},
		{"without choosing", text("bare", "version") + text("bare", "tags") +
			text("bare", "metadata", "model", "name"), "2[sdk]gpt-4o"},
		{"a missing variable", strings.Join(steps["missingVariable"].Warnings, ""),
			"WARNING: While fetching your prompt PromptLayer had the following error: " +
				"These variables were not given and are empty: n."},
		{"list", text("all", 0, "prompt_name") + text("all", 0, "version"), "team/sdk2"},
		{"log", text("log", 0, "choices", 0, "message", "content"), "hey"},
		{"tracking", text("score") + text("metadata") + text("prompt") + text("trackGroup"), "truetruetruetrue"},
		{"log-request", text("logRequest", "success"), "true"},
		{"no template", text("noTemplate") + strings.Join(steps["noTemplate"].Warnings, ""),
			"<nil>WARNING: While fetching a prompt template PromptLayer had the following error: " +
				"There is no template `team/none`. GET /prompt-templates lists those that exist."},
		{"no label", text("noLabel"), "<nil>"},
		{"a bad template", text("badTemplate", "success") + text("badTemplate", "error"), "falseinvalid"},
		{"a bad score", text("badScore"), "false"},
		{"a stranger's template", text("strangersTemplate"), "<nil>"},
		{"a stranger's score and group", text("strangersScore") + text("strangersGroup"), "falsefalse"},
		{"a stranger's log does not disturb the app", text("strangersLog", "choices", 0, "message", "content"), "hey"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}

	for step, s := range steps {
		refused := strings.HasPrefix(step, "no") || strings.HasPrefix(step, "bad") ||
			strings.HasPrefix(step, "stranger")
		if s.Error != "" ||
			!refused && step != "missingVariable" && len(s.Warnings) > 0 ||
			refused && step != "badTemplate" && len(s.Warnings) != 1 {
			t.Errorf("%s: error %q, warnings %q", step, s.Error, s.Warnings)
		}
	}

	group := text("group")
	logged := server.Record(text("log", 1), harness.Events(5))
	if logged.Model != "gpt-4o-answered" || *logged.Tokens != 7 || logged.Scores[0].Number != 77 ||
		logged.Metadata["user"] != "ann" || logged.GroupIDs[0] != group ||
		logged.Prompt == nil || *logged.Prompt.Version != 1 || logged.Tags[0] != "t1" {
		t.Errorf("the logged record: %+v", logged)
	}

	streamed := server.Record(text("stream"), harness.Events(1))
	if streamed.Model != "gpt-4o-answered" || !strings.Contains(string(streamed.Request), `"content":"hey"`) {
		t.Errorf("the streamed record: %s", streamed.Request)
	}
	ran := server.Record(text("run"), harness.Events(1))
	isGrouped := ran.Metadata["user"] == "bob" && ran.GroupIDs[0] == group
	if ran.Prompt == nil || *ran.Prompt.Version != 1 || !isGrouped || ran.Tags[0] != "run" {
		t.Errorf("the record of the run: %+v", ran)
	}

	if r := server.Record(text("logRequest", "id"), harness.Events(2)); r.Model != "gpt-4o" || r.Scores[0].Number != 5 {
		t.Errorf("log-request: %+v", r)
	}
}
