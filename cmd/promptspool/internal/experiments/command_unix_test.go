//go:build unix

package experiments

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What a command does wrong is the fault of one line: the next one is answered by a new process.
func TestACommandAtFaultFailsOneLine(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"prints garbage": {`echo garbage`, "is not JSON: garbage"},
		"lies":           {`echo '{"id":"of another line"}'`, "does not have the id of the line, b"},
		"dies":           {`echo "no key" >&2; exit 3`, "exit status 3"},
		"is killed":      {`kill -9 $$`, "signal: killed"},
		"hangs":          {`sleep 60`, "no answer within"},
		"closes stdout":  {`exec 1>&-; sleep 60`, "signal: killed"},
		"says too much":  {`head -c 70000000 /dev/zero`, "signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `while read -r line; do case $line in *'"b"'*) ` + c.script + ` ;; *) echo "$line" ;; esac; done`
			p := &process{args: []string{"sh", "-c", script}, timeout: 5 * time.Second}
			defer p.stop()
			for _, id := range []string{"a", "b", "c"} {
				answer, err := p.ask(id, map[string]string{"id": id})
				if id != "b" && (err != nil || string(answer) != `{"id":"`+id+`"}`) {
					t.Errorf("%s: %s, %v", id, answer, err)
				}
				if id == "b" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("the fault is %v, want %s", err, c.want)
				}
			}
		})
	}
}

func TestACommandMayTakeOneLineEach(t *testing.T) {
	p := &process{args: []string{"sh", "-c", `read -r line; echo "$line"`}, timeout: 20 * time.Second}
	defer p.stop()
	for i := range 5 {
		id := fmt.Sprint(i)
		answer, err := p.ask(id, map[string]string{"id": id})
		if err != nil || string(answer) != `{"id":"`+id+`"}` {
			t.Fatalf("%d: %s, %v", i, answer, err)
		}
	}

	silent := &process{args: []string{"true"}, timeout: 20 * time.Second}
	_, err := silent.ask("a", map[string]string{"id": "a"})
	if err == nil || !strings.Contains(err.Error(), "without an answer") {
		t.Errorf("a command that answers nothing: %v", err)
	}
	absent := &process{args: []string{"promptspool-no-such-program"}}
	if _, err := absent.ask("a", nil); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a command that is not there: %v", err)
	}
}
