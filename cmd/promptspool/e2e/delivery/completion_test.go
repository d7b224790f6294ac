//go:build linux

package delivery

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/partstest"
)

// shell is an interactive shell on a terminal, in which promptspool completes words but only prints its arguments.
type shell struct {
	*testing.T
	process *os.Process
	keys    io.Writer
	out     *bufio.Reader
}

// newShell starts a shell with the completion that the program prints for it.
func newShell(t *testing.T, name, url string) shell {
	t.Helper()
	program := harness.Program(t)
	dir := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/promptspool", `#!/bin/sh
case "$*" in *--generate-bash-completion) exec `+program+` "$@"; esac
echo; printf '<%s>' "$@"; echo END
`)
	write("config.yaml", "")

	const prompt = "stty cols 200 rows 50; PS1='READY '\n"
	script := harness.Tool(t, program, "completion", name)
	write("completion", script)
	start := map[string]string{
		"bash": "bash --noprofile --rcfile .bashrc -i",
		"zsh":  "zsh -i",
		"fish": "fish --init-command='source fish.start'",
	}[name]
	write("fish.start", "stty cols 200 rows 50; source completion; function fish_prompt; echo 'READY '; end")
	// With this folder fish does not begin to read all manual pages in its background.
	if err := os.MkdirAll(filepath.Join(dir, ".local/share/fish/generated_completions"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(".bashrc", prompt+"source ./completion\n")
	write(".zshrc", prompt+"autoload -U compinit; compinit -u -D; source ./completion\n")

	cmd := exec.Command("script", "--quiet", "--command", start, "/dev/null")
	cmd.Dir = dir
	cmd.Env = []string{
		"HOME=" + dir, "ZDOTDIR=" + dir, "XDG_CONFIG_HOME=" + dir, "TERM=dumb", "LANG=C.UTF-8",
		"PATH=" + dir + "/bin:/usr/bin:/bin", "PROMPTSPOOL_URL=" + url, "PROMPTSPOOL_KEY=" + harness.AdminKey,
	}
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// As it ends it writes its history, into the folder that is about to be removed.
		_, _ = io.WriteString(keys, "exit\r")
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		_ = cmd.Wait()
	})
	s := shell{t, cmd.Process, keys, bufio.NewReader(out)}
	s.until("READY ")
	return s
}

// until reads what the shell shows, up to a text.
func (s shell) until(text string) (shown string) {
	s.Helper()
	late := time.AfterFunc(20*time.Second, func() { _ = s.process.Kill() })
	defer late.Stop()
	for !strings.HasSuffix(shown, text) {
		b, err := s.out.ReadByte()
		if err != nil {
			s.Fatalf("the shell shows no %q, but %q", text, shown)
		}
		shown += string(b)
	}
	return shown
}

// types types a line, in which a bar is the key Tab, and returns the arguments with which the program is called.
func (s shell) types(line string) string {
	s.Helper()
	_, _ = io.WriteString(s.keys, strings.ReplaceAll(line, "|", "\t")+"\r")
	_, called, _ := strings.Cut(s.until(">END"), "\n<")
	s.until("READY ")
	return "<" + strings.TrimSuffix(called, "END")
}

func TestShellsCompleteWhatTheServerHas(t *testing.T) {
	partstest.Need(t, "zsh", "fish")
	server := harness.StartServer(t, t.TempDir(), "127.0.0.1:0")
	server.Call("POST", "/rest/prompt-templates", harness.Greeting("Hello {name}"), "X-API-KEY", harness.AdminKey)
	call := harness.With(harness.Chat(), "metadata", map[string]any{"customer": "Acme Ltd"})
	id := server.Track("/rest/track-request", harness.AdminKey, call)
	server.Record(id, harness.Events(1))

	// It takes calls, and never answers.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })

	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, name, "http://"+server.Addr)
			for line, want := range map[string]string{
				"promptspool requ|sea|--mod|gpt|":                "<requests><search><--model><gpt-4-0613-answered>",
				"promptspool requests search --model=gpt|":       "<requests><search><--model=gpt-4-0613-answered>",
				"promptspool -o nd|requests search --status SU|": "<-o><ndjson><requests><search><--status><SUCCESS>",
				"promptspool requests search --metadata cust|Ac|": "<requests><search><--metadata>" +
					"<customer=Acme Ltd>",
				"promptspool requests search --filter mod|gpt|": "<requests><search><--filter>" +
					"<model:gpt-4-0613-answered>",
				"promptspool templates show te|--vers|1":        "<templates><show><team/greet><--version><1>",
				"promptspool requests stats --by metadata.cus|": "<requests><stats><--by><metadata.customer>",
				"promptspool config check conf|":                "<config><check><config.yaml>",
				"promptspool help comple|":                      "<help><completion>",

				// Nothing is known, and nothing is said.
				"promptspool requests search --url http://127.0.0.1:1 --model gpt|": "<requests><search><--url>" +
					"<http://127.0.0.1:1><--model><gpt>",
				fmt.Sprintf("promptspool requests search --url http://%s --model gpt|", silent.Addr()): fmt.Sprintf(
					"<requests><search><--url><http://%s><--model><gpt>", silent.Addr()),
			} {
				got := s.types(line)
				// Values that do not come within 250 ms are left out, and a busy machine may be late.
				for again := 0; got != want && again < 4; again++ {
					got = s.types(line)
				}
				if got != want {
					t.Errorf("%s: %s, want %s", line, got, want)
				}
			}
		})
	}
}
