//go:build linux

package delivery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// templateFiles writes files into a new folder.
func templateFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const greetFile = `tags: [demo]
model:
  provider: openai
  name: gpt-4o
  parameters: {temperature: 0.5}
messages:
  - role: system
    content: '@@@zz/tone@@@' # published before this one, though its name comes behind
  - role: user
    content: |
      Hello {name}.

      How are you?
`

func TestTemplatesArePublishedFromFilesAndPulledBack(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	at := func(args ...string) []string { return append(args, "--url", "http://"+server.Addr) }
	dir := templateFiles(t, map[string]string{
		"team/greet.yaml": greetFile, "zz/tone.yml": "content: Be brief.\n", "README.md": "# ours",
	})

	for code, args := range [][]string{{"push", dir, "--dry-run"}, {"diff", dir, "--exit-code"}} {
		out, _ := harness.Run(t, code, at(append([]string{"templates"}, args...)...)...)
		if !strings.Contains(out, "2 of 2 templates would be published.") ||
			!strings.Contains(out, "+      Hello {name}.") {
			t.Errorf("%v: %s", args, out)
		}
	}

	if r := server.Get("/prompt-templates/team/greet"); r.Status != 404 {
		t.Errorf("after the diff: %d", r.Status)
	}

	pushed, _ := harness.Run(t, 0, at("templates", "push", dir, "--message", "first", "--label", "prod")...)
	if !strings.Contains(pushed, "new    team/greet        1\n2 of 2 templates published.") {
		t.Errorf("push: %s", pushed)
	}
	again, _ := harness.Run(t, 0, at("templates", "push", dir, "--label", "prod")...)
	if again != "0 of 2 templates published.\n" {
		t.Errorf("pushed again: %s", again)
	}
	labelled, _ := harness.Run(t, 0, at("templates", "push", dir, "--label", "canary")...)
	if !strings.HasSuffix(labelled, "0 of 2 templates published, 2 labelled.\n") {
		t.Errorf("pushed with another label: %s", labelled)
	}

	pulled := filepath.Join(t.TempDir(), "new")
	harness.Run(t, 0, at("templates", "pull", pulled)...)
	harness.Run(t, 0, at("templates", "diff", pulled, "--exit-code")...)
	harness.Run(t, 2, at("templates", "diff", filepath.Join(pulled, "nowhere"), "--exit-code")...)
	if out, _ := harness.Run(t, 0, at("templates", "push", pulled)...); out != "0 of 2 templates published.\n" {
		t.Errorf("what was pulled is pushed: %s", out)
	}
	if out, _ := harness.Run(t, 0, at("templates", "pull", dir)...); out != "0 of 2 templates written.\n" {
		t.Errorf("pulled over what was pushed: %s", out)
	}
	if kept, err := os.ReadFile(filepath.Join(dir, "team/greet.yaml")); err != nil || string(kept) != greetFile {
		t.Errorf("%v: %s", err, kept)
	}

	// A change here, a version there, and a new label.
	file := filepath.Join(pulled, "team/greet.yaml")
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(content), "Hello", "Good day", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	out, _ := harness.Run(t, 0, at("templates", "diff", pulled)...)
	if !strings.Contains(out, "1 of 2 templates") ||
		!strings.Contains(out, "-      Hello {name}.\n+      Good day {name}.\n") {
		t.Errorf("diff of a change: %s", out)
	}

	harness.Run(t, 0, at("templates", "push", pulled, "--message", "second")...)
	if r := server.Get("/prompt-templates/team/greet?label=prod"); !strings.Contains(string(r.Body), "Hello") {
		t.Errorf("the label moved by itself: %s", r.Body)
	}
	out, _ = harness.Run(t, 0, at("templates", "push", pulled, "--label", "prod")...)
	if !strings.Contains(out, "labelled  team/greet        2\n0 of 2 templates published, 1 labelled.") {
		t.Errorf("push with a label: %s", out)
	}
	r := server.Get("/prompt-templates/team/greet?label=prod")
	if !strings.Contains(string(r.Body), "Good day") || r.JSON["commit_message"] != "second" {
		t.Errorf("the label: %s", r.Body)
	}
	out, _ = harness.Run(t, 0, at("templates", "pull", dir)...)
	if out != "FILE             NAME        VERSION\n"+
		"team/greet.yaml  team/greet        2\n1 of 2 templates written.\n" {
		t.Errorf("pull: %s", out)
	}
}

func TestABadFileStopsAPushBeforeAnythingIsPublished(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	for file, c := range map[string]struct{ content, says string }{
		"b.yaml": {"messages:\n- role: nobody\n", "b.yaml:2: messages[0].role must be"},
		"c.yaml": {
			"content: '@@@nowhere@@@'\n",
			"c.yaml:1: snippet @@@nowhere@@@ is neither in the folder nor on the server",
		},
		"d.yaml": {"content: '@@@d@@@'\n", "d.yaml:1: cannot be expanded: the snippets go in a circle: d -> d"},
		// a is there, but its label only with --label prod.
		"e.yaml": {"content: '@@@a@label:prod@@@'\n", "e.yaml:1: snippet @@@a@label:prod@@@ is neither"},
	} {
		dir := templateFiles(t, map[string]string{"a.yaml": "content: good\n", file: c.content})
		_, errs := harness.Run(t, 1, "templates", "push", dir, "--url", "http://"+server.Addr)
		if !strings.Contains(errs, c.says) {
			t.Errorf("push says %s, want %s", errs, c.says)
		}
	}

	if r := server.Get("/prompt-templates"); strings.Contains(string(r.Body), "good") || r.Status != 200 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	dir := templateFiles(t, map[string]string{"a.yaml": "content: good\n", "e.yaml": "content: '@@@a@label:prod@@@'\n"})
	harness.Run(t, 0, "templates", "push", dir, "--label", "prod", "--url", "http://"+server.Addr)
}

func TestTheCommandsOfATemplatesLife(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	for i, text := range []string{"Hello {name}", "Good day {name}{rest}"} {
		server.Call("POST", "/rest/prompt-templates", harness.Greeting(text), "X-API-KEY", harness.AdminKey)
		call := harness.With(harness.With(harness.Chat(), "prompt_id", "team/greet"), "prompt_version", i+1)
		server.Track("/rest/track-request", harness.AdminKey, call)
	}

	for _, c := range []struct {
		says string
		code int
		args []string
	}{
		{`"content": "Hello Ann=1"`, 0, []string{"render", "team/greet", "--version", "1", "--var", "name=Ann=1"}},
		{
			"warning: These variables were not given and are empty: name.", 0,
			[]string{"render", "team/greet", "--var", "rest:=[1]"},
		},
		{"label `none`", 1, []string{"render", "team/greet", "--label", "none"}},
		{`"inferenceConfig"`, 0, []string{"render", "team/greet", "--provider", "amazon.bedrock"}},
		{"The label prod points to version 1 of team/greet.", 0, []string{"label", "team/greet", "prod", "1"}},
		{
			"The label prod of team/greet now points to version 2 (was 1).", 0,
			[]string{"label", "team/greet", "prod", "2"},
		},
		{"The label prod of team/greet already points to version 2.", 0, []string{"label", "team/greet", "prod", "2"}},
		{`"content": "Good day Bob"`, 0, []string{"render", "team/greet", "--label", "prod", "--var", "name=Bob"}},
		{"prod=2", 0, []string{"list"}},
		{"too few: 29 more calls of each", 0, []string{"compare", "team/greet", "1", "prod"}},
		{"1 call of version 2; 1 call of version 1.", 0, []string{"compare", "team/greet", "2", "1"}},
		{`"verdict": "too_few"`, 0, []string{"compare", "team/greet", "1", "2", "-o", "json"}},
		{"0 calls of version 1; 0 calls of version 2.", 0, []string{"compare", "team/greet", "1", "2", "--tag", "x"}},
		{"the latest is 2", 1, []string{"compare", "team/greet", "1", "3"}},
		{"two versions or labels", 2, []string{"compare", "team/greet", "1"}},
		{"Version 3 of `team/greet` does not exist; the latest is 2.", 1, []string{"label", "team/greet", "prod", "3"}},
		{
			"The label prod is removed from version 2 of team/greet.", 0,
			[]string{"label", "team/greet", "prod", "--delete"},
		},
		{`team/greet has no label "prod"`, 1, []string{"label", "team/greet", "prod", "--delete"}},
		{"give a template's name, a label and a version's number", 2, []string{"label", "team/greet", "prod"}},
		{"is not name=text", 2, []string{"render", "team/greet", "--var", "name"}},
		{"templates restore team/greet", 0, []string{"archive", "team/greet"}},
		{"There is no template", 1, []string{"render", "team/greet"}},
		{"team/greet is in use again.", 0, []string{"restore", "team/greet"}},
		{`"Hello "`, 0, []string{"render", "team/greet", "--version", "1"}},
		{
			"There is no template `team/gret`.", 1,
			[]string{"show", "team/gret"},
		},
		{"Create one with `promptspool keys create`", 1, []string{"list", "--key", "ps_unknown"}},
	} {
		args := append(append([]string{"templates"}, c.args...), "--url", "http://"+server.Addr)
		out, errs := harness.Run(t, c.code, args...)
		if !strings.Contains(out+errs, c.says) {
			t.Errorf("%q: %s%s, want %s", c.args, out, errs, c.says)
		}
	}
}

const alertsFile = `slow: # of all calls
  {measure: latency_p95, when: above, threshold: 2.5, window_minutes: 10}
dear:
  measure: cost
  by: metadata.customer
  when: rises
  threshold: 50
`

func TestAlertsAreMadeFromAFileAndPulledBack(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	dir := templateFiles(t, map[string]string{
		"alerts.yaml": alertsFile, "less.yaml": strings.Replace(alertsFile, "dear", "new", 1),
		"faulty.yaml": "slow: {measure: speed, when: above}\n", "list.yaml": "[slow]\n",
		"slip.yaml": "slow: {measure: cost, when: above, threshold: 1, window: 60}\n",
	})
	run := func(code int, want string, args ...string) {
		t.Helper()
		args[1] = filepath.Join(dir, args[1])
		out, err := harness.Run(t, code, append(append([]string{"alerts"}, args...), "--url", "http://"+server.Addr)...)
		if !strings.Contains(out+err, want) {
			t.Errorf("%v: %s%s", args, out, err)
		}
	}

	run(0, "dear would be made.\nslow would be made.\n", "push", "alerts.yaml", "--dry-run")
	run(0, "none.yaml has 0 alerts.", "pull", "none.yaml")
	run(0, "dear is made.\nslow is made.\n", "push", "alerts.yaml")
	run(0, "", "push", "alerts.yaml")
	run(0, "slow      0", "test", "alerts.yaml")
	run(0, "pulled.yaml has 2 alerts.", "pull", "pulled.yaml")
	run(0, "", "push", "pulled.yaml", "--prune")
	run(0, "alerts.yaml has 2 alerts.", "pull", "alerts.yaml")
	if kept, err := os.ReadFile(filepath.Join(dir, "alerts.yaml")); err != nil || string(kept) != alertsFile {
		t.Errorf("%v: %s", err, kept)
	}
	run(0, "dear is removed.\nnew is made.\n", "push", "less.yaml", "--prune")
	run(1, "faulty.yaml: alert slow: invalid: measure must", "push", "faulty.yaml")
	run(1, "; threshold: is missing", "push", "faulty.yaml")
	run(1, `slip.yaml: alert slow: json: unknown field "window"`, "push", "slip.yaml")
	run(1, "list.yaml does not have the names of alerts", "push", "list.yaml")

	out, _ := harness.Run(t, 0, "alerts", "list", "--url", "http://"+server.Addr)
	if !strings.Contains(out, "slow") || strings.Contains(out, "dear") {
		t.Errorf("list: %s", out)
	}
}
