package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"promptspool/cmd/promptspool/internal/config"
)

// atHome gives the test a home, and returns it with a function that runs `promptspool mcp`.
func atHome(t *testing.T) (home string, run func(args ...string) (out string, err error)) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("PROMPTSPOOL_URL", "https://prompts.example.com/base")
	t.Setenv("PROMPTSPOOL_KEY", `a "key"`)

	return home, func(args ...string) (string, error) {
		var out bytes.Buffer
		app := &cli.App{
			Name:           "promptspool",
			Writer:         &out,
			ErrWriter:      &out,
			Metadata:       map[string]any{},
			Commands:       []*cli.Command{Command()},
			ExitErrHandler: func(*cli.Context, error) {},
		}
		args = append([]string{"promptspool", "mcp"}, args...)
		config.Remember(app, args)
		err := app.RunContext(t.Context(), config.Permute(app, args))
		return out.String(), err
	}
}

// program is what agents are told to start.
func program(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSetupKeepsTheFileOfEachAgent(t *testing.T) {
	home, run := atHome(t)
	for name, at := range map[string]struct{ file, member string }{
		"claude": {".claude.json", "mcpServers"},
		"cursor": {".cursor/mcp.json", "mcpServers"},
		"vscode": {".config/Code/User/mcp.json", "servers"},
		"gemini": {".gemini/settings.json", "mcpServers"},
	} {
		entry := map[string]any{
			"command": program(t),
			"args":    []any{"mcp"},
			"env": map[string]any{
				"PROMPTSPOOL_URL": "https://prompts.example.com/base",
				"PROMPTSPOOL_KEY": `a "key"`,
			},
		}
		path := filepath.Join(home, filepath.FromSlash(at.file))

		// Nothing, an empty file, one with other settings, and one with an old entry and other servers.
		other := map[string]any{"command": "other", "n": 12345678901234567}
		none, nothing := map[string]any{}, map[string]any{"b": nil}
		const servers = `{"promptspool": {"url": "old"}, "other": {"command": "other", "n": 12345678901234567}}`
		for before, rest := range map[string]map[string]any{
			"":                                       {at.member: none},
			" {} ":                                   {at.member: none},
			`{"z": [1, "é"], "a": {"b": null}}`:      {at.member: none, "z": []any{1, "é"}, "a": nothing},
			`{"` + at.member + `": null, "x": 1}`:    {at.member: none, "x": 1},
			`{"` + at.member + `": ` + servers + `}`: {at.member: map[string]any{"other": other}},
		} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if before != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
					t.Fatal(err)
				}
			}

			shown, err := run("setup", "--client", name)
			if err != nil || !strings.Contains(shown, path) {
				t.Fatal(shown, err)
			}
			if now, _ := os.ReadFile(path); string(now) != before {
				t.Errorf("%s: without --write the file is %s", name, now)
			}
			if out, err := run("setup", "--client", name, "--write"); err != nil || !strings.Contains(out, path) {
				t.Fatal(out, err)
			}

			rest[at.member].(map[string]any)["promptspool"] = entry
			want, _ := json.Marshal(rest)
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, want), decoded(t, now)); diff != "" {
				t.Errorf("%s with %q:\n%s\n%s", name, before, now, diff)
			}
			if strings.Contains(before, "12345678901234567") && !bytes.Contains(now, []byte("12345678901234567")) {
				t.Errorf("%s changes a number: %s", name, now)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s is readable for others: %v %v", name, info.Mode(), err)
			}
		}
	}
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func TestSetupAddsATableToTheFileOfCodex(t *testing.T) {
	home, run := atHome(t)
	path := filepath.Join(home, ".codex", "config.toml")
	table := "\n[mcp_servers.promptspool]\ncommand = \"" + program(t) + "\"\nargs = [\"mcp\"]\n\n" +
		"[mcp_servers.promptspool.env]\nPROMPTSPOOL_KEY = \"a \\\"key\\\"\"\n" +
		"PROMPTSPOOL_URL = \"https://prompts.example.com/base\"\n"

	if out, err := run("setup", "--write", "--client", "codex"); err != nil {
		t.Fatal(out, err)
	}
	if now, _ := os.ReadFile(path); string(now) != table {
		t.Errorf("%s, want %s", now, table)
	}

	before := "# mine\nmodel = \"gpt\"\n\n[mcp_servers.other]\ncommand = \"x\""
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run("setup", "--write", "--client", "codex"); err != nil {
		t.Fatal(out, err)
	}
	now, _ := os.ReadFile(path)
	if want := before + table; string(now) != want {
		t.Errorf("%s, want %s", now, want)
	}

	// It would be there twice.
	_, err := run("setup", "--write", "--client", "codex")
	again, _ := os.ReadFile(path)
	if err == nil || !strings.Contains(err.Error(), "already") || string(again) != string(now) {
		t.Errorf("%v: %s", err, again)
	}
}

func TestSetupLeavesFilesThatItCannotRead(t *testing.T) {
	home, run := atHome(t)
	path := filepath.Join(home, ".claude.json")
	for before, want := range map[string]string{
		"{\n // mine\n}":         "without comments",
		`{"mcpServers": "none"}`: "something else than servers",
		`[]`:                     "is not a JSON object",
	} {
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := run("setup", "--client", "claude", "--write")
		// The message has the entry, for a person to add.
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), program(t)) {
			t.Errorf("%s: %v", before, err)
		}
		if now, _ := os.ReadFile(path); string(now) != before {
			t.Errorf("%s became %s", before, now)
		}
	}
}

func TestSetupFollowsALinkAndLeavesAKeyWhereLoginKeepsIt(t *testing.T) {
	home, run := atHome(t)
	t.Setenv("PROMPTSPOOL_URL", "")
	t.Setenv("PROMPTSPOOL_KEY", "")
	prod := config.Context{URL: "https://here", Key: "secret"}
	kept := config.Contexts{Current: "prod", Named: map[string]config.Context{"prod": prod}}
	if err := kept.Save(); err != nil {
		t.Fatal(err)
	}
	real, link := filepath.Join(home, "dotfiles.json"), filepath.Join(home, ".claude.json")
	if err := os.WriteFile(real, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}

	if out, err := run("setup", "--client", "claude", "--write"); err != nil {
		t.Fatal(out, err)
	}
	now, _ := os.ReadFile(real)
	if text := string(now); strings.Contains(text, "secret") || !strings.Contains(text, `"--context",`) {
		t.Error(text)
	}
	if target, err := os.Readlink(link); err != nil || target != real {
		t.Error(target, err)
	}
}

func TestSetupAsksForAnAgent(t *testing.T) {
	_, run := atHome(t)
	for _, args := range [][]string{{"setup"}, {"setup", "--client", "emacs"}, {"set"}, {"setup", "now"}} {
		if out, err := run(args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}
