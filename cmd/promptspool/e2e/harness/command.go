//go:build linux

package harness

import (
	"bytes"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// RunWith runs a command to its end and returns its output and its exit code.
func RunWith(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()

	cmd := exec.Command(Program(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs

	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}

	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Said is the output of a command and its exit code.
type Said struct {
	Code     int
	Out, Err string
}

// Say runs a command without a key.
func Say(t *testing.T, args ...string) Said {
	t.Helper()
	out, errs, code := RunWith(t, nil, args...)
	return Said{code, out, errs}
}

// Run runs a command that must end with this exit code, and returns its output.
func Run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, got := RunWith(t, []string{"PROMPTSPOOL_KEY=" + AdminKey}, args...)
	if got != code {
		t.Fatalf("%s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, stdout, stderr)
	}
	return stdout, stderr
}

// LastLine returns the last line of a text.
func LastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// PeopleSay runs a people command beside a server, and returns what it prints.
func PeopleSay(t *testing.T, server *Node, args ...string) string {
	t.Helper()
	got := Say(t, append(append([]string{"people"}, args...), "--data", server.Data)...)
	if got.Code != 0 {
		t.Fatalf("people %v: %+v", args, got)
	}
	return got.Out
}

// LinkPath returns the path and query of the link that a command printed.
func LinkPath(t *testing.T, printed string) string {
	t.Helper()
	link, _, _ := strings.Cut(printed, "\n")
	u, err := url.Parse(link)
	if err != nil || u.Host == "" || u.Query().Get("code") == "" {
		t.Fatalf("%q is not a link", printed)
	}
	return u.RequestURI()
}
