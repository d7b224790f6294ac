//go:build linux

package delivery

import (
	"fmt"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// braces is JSON in an f-string, as SDKs send it: it cannot be rendered, and is returned
// as it was sent.
const braces = `Answer as {"name": "<x>", "n": [1, 2]}` + "\nfor {who}."

func TestTheAPIPublishesWhatCannotBeRenderedWithWarnings(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	want := []any{map[string]any{"path": "messages[0].content[0].text", "line": 1.0, "column": 11.0,
		"message": `has {"name"}, which is no variable's name; write {{ and }} for braces`}}
	template := map[string]any{"prompt_name": "old", "type": "chat",
		"messages": []any{map[string]any{"role": "user", "content": braces}}}

	for _, c := range []struct {
		method, path string
		status       int
		body         any
	}{
		{"POST", "/rest/prompt-templates", 201, harness.Greeting(braces, "prod")},
		{"POST", "/library-publish-prompt-template", 200, map[string]any{
			"prompt_name": "old", "prompt_template": template, "release_labels": []string{"prod"},
		}},
		{"PATCH", "/rest/prompt-templates/old", 201, map[string]any{
			"commit_message": "again", "release_labels": []string{"next"},
			"messages": map[string]any{"0": map[string]any{"role": "assistant", "content": braces}},
		}},
	} {
		r := sidecar.Call(c.method, c.path, c.body, "X-API-KEY", harness.AdminKey)
		if r.Status != c.status || fmt.Sprint(r.JSON["warnings"]) != fmt.Sprint(want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.Status, r.Body)
		}
	}

	fetch := map[string]any{
		"label": "prod", "input_variables": map[string]string{"who": "Ann"}, "provider": "openai",
	}
	r := sidecar.Call("POST", "/prompt-templates/team/greet", fetch, "X-API-KEY", harness.AdminKey)
	if r.Status != 422 || !strings.Contains(string(r.Body), "(line 1, column 11)") {
		t.Errorf("fetched with variables: %d %s", r.Status, r.Body)
	}
	fetch["skip_input_variable_rendering"] = true
	r = sidecar.Call("POST", "/prompt-templates/team/greet", fetch, "X-API-KEY", harness.AdminKey)
	if r.Status != 200 || !strings.Contains(fmt.Sprint(r.JSON["llm_kwargs"]), braces) {
		t.Errorf("fetched as it is: %d %s", r.Status, r.Body)
	}
}

const unclosedFile = `template_format: jinja2
content: |
  Dear {{ name }},

  {% for item in items %}
  - {{ item }}
`

func TestPushAndLabelRefuseWhatCannotBeRendered(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	at := func(args ...string) []string {
		return append(append([]string{"templates"}, args...), "--url", "http://"+server.Addr)
	}
	dir := templateFiles(t, map[string]string{
		"a.yaml": "content: good\n", "team/bad.yaml": unclosedFile, "z.yaml": "content: \"{who} {ticket\"\n",
	})
	faults := []string{
		"team/bad.yaml:5:1: content, in line 3, column 1 of its text, has a {% for %} that is not closed with",
		"z.yaml:1:10: content, in line 1, column 7 of its text, has a { that is not closed; write {{ and }} for braces",
	}

	out, errs := harness.Run(t, 1, at("push", dir, "--label", "prod")...)
	for _, want := range append(faults, "nothing was published", "--force") {
		if !strings.Contains(errs, want) {
			t.Errorf("push says %s%s, want %s", out, errs, want)
		}
	}
	if r := server.Get("/prompt-templates"); fmt.Sprint(r.JSON["total"]) != "0" {
		t.Errorf("after the refused push: %d %s", r.Status, r.Body)
	}
	if _, errs = harness.Run(t, 0, at("diff", dir)...); !strings.Contains(errs, "warning: "+faults[0]) {
		t.Errorf("diff says %s", errs)
	}

	out, errs = harness.Run(t, 0, at("push", dir, "--force", "--label", "staging")...)
	if !strings.Contains(out, "3 of 3 templates published.") ||
		!strings.Contains(errs, "warning: "+faults[0]) || strings.Count(errs, "is not closed") != 2 {
		t.Errorf("push --force: %s%s", out, errs)
	}
	harness.Run(t, 0, at("push", dir)...) // nothing is left to do, so nothing is refused

	_, errs = harness.Run(t, 1, at("label", "team/bad", "prod", "1")...)
	want := "content[0].text:3:1: has a {% for %} that is not closed"
	if !strings.Contains(errs, want) || !strings.Contains(errs, "the label was not moved") {
		t.Errorf("label says %s, want %s", errs, want)
	}
	if _, errs = harness.Run(t, 1, at("push", dir, "--label", "prod")...); !strings.Contains(errs, faults[0]) {
		t.Errorf("push with a label for a published version: %s", errs)
	}
	if r := server.Get("/prompt-templates/team%2Fbad?label=prod"); r.Status != 404 {
		t.Errorf("the label was set: %d", r.Status)
	}
	out, errs = harness.Run(t, 0, at("label", "team/bad", "prod", "1", "--force")...)
	if !strings.Contains(out, "points to version 1") || !strings.Contains(errs, "warning: content[0].text:3:1") {
		t.Errorf("label --force: %s%s", out, errs)
	}
}
