//go:build linux

package durability

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/spool/database/postgres/postgrestest"
)

// answerScript is the command of an experiment, in place of a model. Version 2 is rude. What it answers costs, and is
// noted in the file paid. It fails as ANSWERS says.
const answerScript = `read -r line
id=$(echo "$line" | cut -d'"' -f4)
row=$(echo "$line" | sed 's/.*"row":{"id":"\([^"]*\)".*"version":\([0-9]*\).*/\1 \2/')
text="Hello, Ann."
case $line in *'"version":2,'*) text=What? ;; esac
case $ANSWERS$line in
killed*'Ann 3'*) kill -9 $PPID; exit ;;
waits*) touch begun; until [ -e go ]; do sleep 0.02; done ;;
busy*)
	echo "$row" >>asked
	if [ "$(grep -c "^$row\$" asked)" -lt 3 ]; then
		echo '{"id": "'$id'", "error": "too many requests", "retry_after": 0.01}'
		exit
	fi ;;
esac
echo "$row" >>paid
echo '{"id": "'$id'", "response": {"model": "gpt-4o-mini",
	"choices": [{"message": {"role": "assistant", "content": "'"$text"'"}}],
	"usage": {"prompt_tokens": 1000, "completion_tokens": 10}}}' | tr -d '\n'
`

// judgeScript is an evaluator.
const judgeScript = `read -r line
value=0.2
case $line in *'"text":"Hello'*) value=0.9 ;; esac
echo '{"id": "'$(echo "$line" | cut -d'"' -f4)'", "value": '$value', "reason": "by its greeting", "source": "model"}'
`

// lab is a folder in which experiments are run, against a server with calls of the template greet.
type lab struct {
	*testing.T
	server *harness.Node
	dir    string
	env    []string
}

func newLab(t *testing.T, server *harness.Node, calls int) *lab {
	t.Helper()
	l := &lab{t, server, t.TempDir(), nil}
	l.write("answer.sh", answerScript)
	l.write("judge.sh", judgeScript)
	l.publish("Say hello to {name}", "prod")
	l.publish("Greet {name}")
	for i := range calls {
		call := harness.With(harness.Chat(), "prompt_id", "team/greet")
		id := server.Track("/rest/track-request", harness.AdminKey, call)
		server.Call("POST", "/rest/track-prompt", map[string]any{
			"request_id": id, "prompt_name": "team/greet", "version": 1,
			"prompt_input_variables": map[string]string{"name": fmt.Sprint("Ann ", i)},
		}, "X-API-KEY", harness.AdminKey)
	}
	return l
}

// write writes a file of the folder.
func (l *lab) write(name, text string) {
	l.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
}

// has reports whether the folder has a file.
func (l *lab) has(name string) bool {
	_, err := os.Stat(filepath.Join(l.dir, name))
	return err == nil
}

func (l *lab) publish(text string, labels ...string) {
	l.Helper()
	body := harness.Greeting(text, labels...)
	body["prompt_version"].(map[string]any)["metadata"] = map[string]any{
		"model": map[string]any{"provider": "openai", "name": "gpt-4o-mini"},
	}
	if r := l.server.Call("POST", "/rest/prompt-templates", body, "X-API-KEY", harness.AdminKey); r.Status != 201 {
		l.Fatalf("%d %s", r.Status, r.Body)
	}
}

// command is the experiment, as it is started by hand.
func (l *lab) command(address string, args ...string) *exec.Cmd {
	all := append([]string{"experiments", "run", "--url", "http://" + address, "--concurrency", "1", "--timeout", "30s",
		"--against", "team/greet@prod",
		"--evaluate", "contains:Hello", "--evaluate", "regex:^[A-Z]",
		"--evaluate", "kind=sh judge.sh"}, args...)
	all = append(all, "--", "sh", "answer.sh")
	cmd := exec.Command(harness.Program(l.T), all...)
	cmd.Dir = l.dir
	cmd.Env = append(append(os.Environ(), "PROMPTSPOOL_KEY="+harness.AdminKey), l.env...)
	return cmd
}

// run runs an experiment, which must end with this exit code, and returns what it prints.
func (l *lab) run(code int, args ...string) string {
	l.Helper()
	cmd := l.command(l.server.Addr, args...)
	out, _ := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("no answer within")) {
		l.Errorf("experiments run %v: a command hangs\n%s", args, out)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.Fatalf("experiments run %v: exit %d, want %d\n%s", args, got, code, out)
	}
	return string(out)
}

// paid returns how often each call was paid for.
func (l *lab) paid() map[string]int {
	l.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "paid"))
	if err != nil {
		l.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[line]++
	}
	return times
}

// logged returns how many calls of an experiment the server has, and how many of them with all scores.
func (l *lab) logged(experiment string) (calls, scored int) {
	l.Helper()
	of := "metadata.experiment:" + experiment
	return l.server.Total(map[string]any{"filter": of}),
		l.server.Total(map[string]any{"filter": of + " score.kind:* score.contains:* score.regex:*"})
}

// onBothDatabases runs a scene against a server of each kind.
func onBothDatabases(t *testing.T, scene func(t *testing.T, server *harness.Node)) {
	t.Run("badger", func(t *testing.T) {
		t.Parallel()
		scene(t, harness.StartServer(t, t.TempDir(), harness.FreePort(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := []string{"PROMPTSPOOL_ARCHIVE=" + postgrestest.Plain(t)}
		server := harness.Begin(t, harness.Program(t), dsn, t.TempDir(), harness.FreePort(t), "server")
		if !server.Takes() {
			t.Fatal("the server does not start")
		}
		scene(t, server)
	})
}

func TestAnExperimentDecidesWhetherALabelMoves(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, server *harness.Node) {
		l := newLab(t, server, 30)
		gates := []string{"--filter", "status:success", "--gate", "kind >= base - 0.02", "--gate", "contains >= 0.9"}

		out := l.run(1, append(gates, "--template", "team/greet@2", "--name", "red", "--junit", "junit.xml")...)
		for _, want := range []string{
			"30 rows, versions [2 1] of team/greet", "60 calls to make", "FAILED  kind >= base - 0.02",
			"worse", "+What?", "2 of 2 gates failed",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("red: %s\nis not in\n%s", want, out)
			}
		}
		junit, _ := os.ReadFile(filepath.Join(l.dir, "junit.xml"))
		if !strings.Contains(string(junit), `failures="2"`) {
			t.Errorf("JUnit: %s", junit)
		}

		// In time, a sidecar forwards all that a run logs.
		l.publish("Please say hello to {name}")
		l.server = harness.StartSidecar(t, t.TempDir(), server.Addr)
		out = l.run(0, append(gates, "--template", "team/greet", "--name", "green", "--limit", "5",
			"--evaluate", "max_cost:0.01")...)
		l.server = server
		if !strings.Contains(out, "passed  kind >= base - 0.02") {
			t.Errorf("green:\n%s", out)
		}
		at := []string{"--url", "http://" + server.Addr}
		out, _ = harness.Run(t, 0, append(at, "templates", "label", "team/greet", "prod", "3")...)
		if !strings.Contains(out, "now points to version 3 (was 1)") {
			t.Error(out)
		}
		for name, want := range map[string]int{"red": 60, "green": 10} {
			if calls, scored := l.logged(name); calls != want || scored != want {
				t.Errorf("%s has %d calls, %d with all scores", name, calls, scored)
			}
		}

		out, _ = harness.Run(t, 0, append(at, "experiments", "compare", "red", "green")...)
		if !regexp.MustCompile(`contains +0 % true +100 % true`).MatchString(out) {
			t.Errorf("compare:\n%s", out)
		}
	})
}

// Each run is killed one request later than the last, before or after the server has it.
func TestARunThatIsKilledPaysForNoAnswerTwice(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(t *testing.T, server *harness.Node) {
		l := newLab(t, server, 4)
		args := []string{"--filter", "status:success", "--template", "team/greet@2", "--name", "torn"}
		uncertain, kills := 0, 0
		for left := 1; ; left++ {
			var mutex sync.Mutex
			count := 0
			var cmd *exec.Cmd
			kill := func() {
				mutex.Lock()
				defer mutex.Unlock()
				if count++; count == 2*left+8 {
					kills++
					_ = cmd.Process.Kill()
				}
			}
			proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server.Addr})
			proxy.ErrorLog = log.New(io.Discard, "", 0)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				kill()
				proxy.ServeHTTP(w, r)
				kill()
			}))
			cmd = l.command(strings.TrimPrefix(front.URL, "http://"), args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			mutex.Lock()
			err := cmd.Start()
			mutex.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			err = cmd.Wait()
			front.CloseClientConnections()
			front.Close()
			uncertain += strings.Count(out.String(), "may be paid for twice")
			if err == nil {
				break
			}
			if left > 60 {
				t.Fatalf("it does not end:\n%s", out.String())
			}
		}

		twice := 0
		for call, times := range l.paid() {
			twice += times - 1
			if times < 1 {
				t.Errorf("%s was not paid for", call)
			}
		}
		calls, scored := l.logged("torn")
		if len(l.paid()) != 8 || calls != 8 || scored != 8 || twice > uncertain || kills < 3 {
			t.Errorf("after %d kills: %d answers, %d of them twice, %d said to be uncertain; %d logged, %d scored",
				kills, len(l.paid()), twice, uncertain, calls, scored)
		}
		if l.has(".promptspool-experiments") {
			t.Error("the journal of a complete run is still there")
		}

		// Elsewhere, without the journal, what is logged is known as well.
		l.write("paid", "")
		if out := l.run(0, args...); len(l.paid()) != 0 || !strings.Contains(out, "0 calls to make") {
			t.Errorf("once more: %v\n%s", l.paid(), out)
		}
	})
}

// The process is killed while the command has a row, and the server leaves in the middle of the next run.
func TestARunSaysWhatIsUncertainAndWaitsForTheServer(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	l := newLab(t, server, 6)
	args := []string{"--filter", "status:success", "--template", "team/greet@2", "--name", "away"}
	l.env = append(l.env, "ANSWERS=killed")
	l.run(-1, args...)
	l.env = slices.DeleteFunc(l.env, func(v string) bool { return v == "ANSWERS=killed" })

	cmd := l.command(server.Addr, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	before := len(l.paid())
	server.Eventually(func() bool { return len(l.paid()) > before }, func() string { return "no answer came" })
	server.Kill()
	time.Sleep(100 * time.Millisecond)
	again := harness.StartServer(t, server.Data, server.Addr)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}

	l.server = again
	calls, scored := l.logged("away")
	uncertain := strings.Count(out.String(), "may be paid for twice")
	if uncertain != 1 || len(l.paid()) != 12 || calls != 12 || scored != 12 {
		t.Errorf("%d answers, %d logged, %d scored\n%s", len(l.paid()), calls, scored, out.String())
	}
	for call, times := range l.paid() {
		if times > 1 {
			t.Errorf("%s was paid for %d times", call, times)
		}
	}
}

func TestARunRefusesWhatItMustNotDo(t *testing.T) {
	t.Parallel()
	l := newLab(t, harness.StartServer(t, t.TempDir(), "127.0.0.1:0"), 3)
	var text strings.Builder
	text.WriteString("name,expected\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "Ann %d,Hello\n", i)
	}
	l.write("rows.csv", text.String())
	version := []string{"--template", "team/greet@2"}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "there are no rows", append(version, "--filter", "before:2020-01-01")},
		{1, "needs --yes; nothing was asked", append(version, "--rows", "rows.csv")},
		{2, "give --filter or --rows", version},
		{2, "another version of the same", []string{"--template", "team/greet@1", "--filter", "status:success"}},
		{2, "is none of equal", append(version, "--filter", "status:success", "--evaluate", "python3 x.py")},
		{2, "is not METRIC", append(version, "--filter", "status:success", "--gate", "kind = 1")},
		{1, "Version 9 of", []string{"--template", "team/greet@9", "--filter", "status:success"}},
	} {
		if out := l.run(c.code, c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %s\nwant %s", c.args, out, c.want)
		}
	}
	if l.has("paid") || l.has(".promptspool-experiments") {
		t.Error("something was asked, or is kept")
	}

	// A provider that is busy says when to ask again.
	l.env = append(l.env, "ANSWERS=busy")
	l.run(0, append(version, "--filter", "status:success", "--gate", "errors <= 0")...)
}

// While a run waits for its first answer, another of its name is refused. Then the server leaves, and the run is
// stopped while it waits for that.
func TestARunThatLosesItsServerIsContinued(t *testing.T) {
	t.Parallel()
	server := harness.StartServer(t, t.TempDir(), harness.FreePort(t))
	l := newLab(t, server, 2)
	args := []string{"--filter", "status:success", "--template", "team/greet@2", "--name", "gone"}
	l.env = []string{"ANSWERS=waits"}
	cmd := l.command(server.Addr, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	server.Eventually(func() bool { return l.has("begun") }, func() string { return "nothing was asked" })
	if second := l.run(1, args...); !strings.Contains(second, "gone is running in another process") {
		t.Errorf("a second run: %s", second)
	}

	server.Kill()
	l.write("go", "")
	server.Eventually(func() bool { return l.has("paid") }, func() string { return "no answer came" })
	_ = cmd.Process.Signal(os.Interrupt)
	err := cmd.Wait()
	if err == nil || !strings.Contains(out.String(), "To continue, give the same command --name gone.") {
		t.Errorf("%v: %s", err, out.String())
	}
	l.server = harness.StartServer(t, server.Data, server.Addr)
	if again := l.run(0, args...); strings.Contains(again, "twice") {
		t.Errorf("nothing is uncertain: %s", again)
	}
	for call, times := range l.paid() {
		if times > 1 {
			t.Errorf("%s was paid for %d times", call, times)
		}
	}
	if calls, scored := l.logged("gone"); calls != 4 || scored != 4 {
		t.Errorf("%d calls are logged, %d scored", calls, scored)
	}
}
