//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"promptspool/api/dashboard/docs"
	"promptspool/cmd/promptspool/e2e/harness"
)

// programs has the commands that run and compile a block of a language.
var programs = map[string]struct{ extension, run, compile string }{
	"python":     {".py", "python3 %s", "python3 -m py_compile %s"},
	"javascript": {".mjs", "node %s", "node --check %s"},
	"go":         {".go", "go build -o example.bin %s; ./example.bin", "go vet %s"},
	"yaml":       {".yaml", "", ""},
	"json":       {".json", "", ""},
	"toml":       {".toml", "", `python3 -c 'import sys, tomllib; tomllib.load(open(sys.argv[1], "rb"))' %s`},
}

// settled replaces sleep: pages ask people to wait a moment, but a script can wait until
// the sidecar has delivered.
const settled = `sleep() {
	until promptspool spool status --data .promptspool -o json | grep -q '"events": 0'; do command sleep 0.1; done
}
`

// bsdDate is the date of macOS and BSD, less what Linux's lacks: what runs with it runs everywhere.
const bsdDate = `#!/bin/sh
for word; do
	shift
	case $word in
	-u) ;;
	+*) word=$(printf %%s "$word" | sed 's/%%[0-9]*N/N/g') ;;
	*) echo "date: illegal option or time: $word" >&2; exit 1 ;;
	esac
	set -- "$@" "$word"
done
exec %s "$@"
`

// readersPath returns a PATH on which the binary is, and a date that is not Linux's.
func readersPath(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(harness.Program(t), filepath.Join(bin, "promptspool")); err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("date")
	if err != nil {
		t.Fatal(err)
	}
	// A process that another test starts meanwhile would hold the file open for writing, and nothing
	// could run it.
	syscall.ForkLock.RLock()
	err = os.WriteFile(filepath.Join(bin, "date"), fmt.Appendf(nil, bsdDate, real), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}

	return "PATH=" + bin + ":" + os.Getenv("PATH")
}

func TestTheReadersDateIsNotLinuxs(t *testing.T) {
	t.Parallel()
	path := readersPath(t)
	for args, want := range map[string]string{
		"-u +%Y":       "^2[0-9]{3}\n$",
		"+%s":          "^[0-9]{10}\n$",
		"+%s.%3N":      "^[0-9]{10}.N\n$",
		"-d yesterday": "^$",
		"--iso-8601":   "^$",
		"-v-1d":        "^$",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "date "+args)
		cmd.Env = []string{path}
		out, err := cmd.Output()
		if !regexp.MustCompile(want).Match(out) || (err != nil) != (want == "^$") {
			t.Errorf("date %s: %q, %v", args, out, err)
		}
	}
}

// script returns the shell text that runs a page's examples in a folder, in their order.
// Those of a language that can be compiled are, also if they are only shown.
func script(t *testing.T, dir, page string, replace *strings.Replacer) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(settled)
	saved := "" // files of Go, which are compiled with the next example
	for i, e := range harness.ExamplesOf(page) {
		code := replace.Replace(e.Code)
		program := programs[e.Language]
		if e.Mark == "run" && e.Language == "sh" {
			text.WriteString(printing(code, e.Rest))
			continue
		}
		if e.Mark != "run" && program.compile == "" {
			continue // see docs_shown_test.go, and TestEveryBlockOfThePagesIsRunOrChecked
		}

		name := fmt.Sprintf("%s-%d%s", page, i, program.extension)
		command := program.run
		if e.Mark != "run" {
			command = program.compile
		} else if e.Rest != "" {
			name, command = e.Rest, ""
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		switch {
		case command != "":
			text.WriteString(fmt.Sprintf(command, name+saved) + "\n")
		case e.Language == "go":
			saved += " " + name
		}
	}
	return text.String()
}

// printing returns a block of the shell that fails unless it prints what follows its mark: "(prints TEXT)", or nothing.
func printing(code, rest string) string {
	wanted, states := strings.CutPrefix(rest, "(prints ")
	if !states {
		return code
	}

	// The group is of this shell, which keeps its variables.
	return fmt.Sprintf("{\n%s} >printed\ncat printed\n"+
		"grep -qF '%s' printed || { echo 'it does not print %[2]s'; exit 1; }\n", code, strings.TrimSuffix(wanted, ")"))
}

func TestABlockThatDoesNotPrintWhatItStatesFails(t *testing.T) {
	t.Parallel()
	for rest, isGood := range map[string]bool{"": true, "(prints one)": true, "(prints three)": false} {
		code := printing("a=one\necho $a\n", rest) + "test $a = one\n"
		out, err := exec.CommandContext(t.Context(), "bash", "-euc", "cd "+t.TempDir()+"\n"+code).CombinedOutput()
		if (err == nil) != isGood || !strings.HasPrefix(string(out), "one\n") {
			t.Errorf("%q: %v\n%s", rest, err, out)
		}
	}
}

// fakeProvider answers as OpenAI does, and returns what clients of it read from their environment.
func fakeProvider(t *testing.T) []string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := "Paris Tokyo Nairobi"
		if !strings.Contains(string(body), "with one word") {
			answer = "It is Paris, Tokyo or Nairobi."
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4o-mini",
			"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": %q}}],
			"usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}}`, answer)
	}))
	t.Cleanup(provider.Close)
	stubs, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}

	// Python's client comes from no Debian package. The stub is called as it is.
	return []string{"OPENAI_BASE_URL=" + provider.URL + "/v1", "OPENAI_API_KEY=none", "PYTHONPATH=" + stubs}
}

// examplesRun runs the examples of all pages in the folder where up was started, page
// after page, as a reader would.
func examplesRun(t *testing.T, dir, sidecar, server string) {
	t.Helper()
	path := readersPath(t)
	key, err := os.ReadFile(filepath.Join(dir, ".promptspool", "key"))
	if err != nil {
		t.Fatal(err)
	}
	// What the page about OpenTelemetry installs with npm.
	modules := filepath.Join(harness.NPMModules(t, "testdata/otel"), "node_modules")
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}

	provider := fakeProvider(t)
	replace := strings.NewReplacer("127.0.0.1:8787", sidecar, "127.0.0.1:8788", server)
	for _, page := range docs.Names() {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script(t, dir, page, replace))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), path, "GOFLAGS=",
			"PROMPTSPOOL_URL=http://"+server, "PROMPTSPOOL_KEY="+strings.TrimSpace(string(key)))
		cmd.Env = append(cmd.Env, provider...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("the examples of %s: %v\n%s", page, err, out)
		}
		for line := range strings.Lines(string(out)) {
			var answer struct{ Success *bool }
			if json.Unmarshal([]byte(line), &answer) == nil && answer.Success != nil && !*answer.Success {
				t.Errorf("an answer to %s: %s", page, line)
			}
		}
	}
}

// documentation gets a page without a key.
func documentation(t *testing.T, url string) (status int, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(content)
}
