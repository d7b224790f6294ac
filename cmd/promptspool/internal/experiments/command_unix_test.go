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
	for name, fault := range map[string]struct{ script, want string }{
		"prints garbage": {`echo garbage`, "the command's answer is garbage"},
		"lies":           {`echo '{"id":"of another line"}'`, "it does not have the id of the line, b"},
		"dies":           {`echo "no key" >&2; exit 3`, "exit status 3"},
		"is killed":      {`kill -9 $$`, "signal: killed"},
		"hangs":          {`sleep 60`, "gave no answer within"},
		"closes stdout":  {`exec 1>&-; sleep 60`, "gave no answer within"},
		"says too much":  {`head -c 70000000 /dev/zero; sleep 60`, "gave no answer within"},
		"answers a list": {`echo '["b"]'`, "cannot unmarshal array"},
		"leaves":         {`exit`, "without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `while read -r line; do case $line in *'"b"'*) ` + fault.script +
				` ;; *) echo "$line" ;; esac; done`
			c := newCommand([]string{"sh", "-c", script}, 3*time.Second)
			defer c.stop()
			for _, id := range []string{"a", "b", "c"} {
				var answer struct{ ID string }
				err := c.ask(id, map[string]string{"id": id}, &answer)
				if id != "b" && (err != nil || answer.ID != id) {
					t.Errorf("%s: %s, %v", id, answer, err)
				}
				if id == "b" && (err == nil || !strings.Contains(err.Error(), fault.want)) {
					t.Errorf("the fault is %v, want %s", err, fault.want)
				}
			}
		})
	}
}

func TestACommandMayTakeOneLineEach(t *testing.T) {
	c := newCommand([]string{"sh", "-c", `read -r line; echo "$line"`}, 20*time.Second)
	defer c.stop()
	for i := range 5 {
		var answer struct{ ID string }
		id := fmt.Sprint(i)
		err := c.ask(id, map[string]string{"id": id}, &answer)
		if err != nil || answer.ID != id {
			t.Fatalf("%d: %s, %v", i, answer, err)
		}
	}

	absent := newCommand([]string{"promptspool-no-such-program"}, time.Second)
	if err := absent.ask("a", nil, nil); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a command that is not there: %v", err)
	}
}
