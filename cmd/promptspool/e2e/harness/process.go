//go:build linux

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Node is one running process.
type Node struct {
	T    testing.TB
	Cmd  *exec.Cmd
	Addr string // of its API
	Ops  string // of its operations listener
	Data string // its folder

	earlier bool          // it is of Releases
	Killed  bool          // by Kill
	Exited  chan struct{} // closed when its log ends, because the process did

	mu     sync.Mutex
	log    bytes.Buffer  // under mu; of stderr
	out    bytes.Buffer  // under mu; of stdout
	taking chan struct{} // closed when it logs that it takes requests
}

// Launch starts the binary and waits until it takes requests.
func Launch(t *testing.T, data, addr string, args ...string) *Node {
	t.Helper()
	n := Begin(t, Program(t), nil, data, addr, args...)
	if !n.Takes() {
		t.Fatalf("%s ended before it took calls:\n%s", args[0], n.Logged())
	}
	return n
}

// Begin starts a binary with additional environment variables, and does not wait for it.
func Begin(t testing.TB, program string, env []string, data, addr string, args ...string) *Node {
	t.Helper()
	n := &Node{T: t, Data: data, taking: make(chan struct{}), Exited: make(chan struct{})}
	args = append(args, "--data", data, "--listen", addr, "--ops-listen", "127.0.0.1:0", "--log-format", "json")
	_, n.earlier = earlier.Load(program)
	n.Cmd = exec.Command(program, args...)
	n.Cmd.Env = append(append(os.Environ(), "PROMPTSPOOL_BOOTSTRAP_KEY="+AdminKey), env...)
	n.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // none outlives tests that are killed

	stderr, err := n.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.Cmd.Stdout = stdout{n}
	if err := n.Cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go n.read(stderr)

	t.Cleanup(func() {
		if n.Cmd.ProcessState == nil {
			n.Kill()
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", args[0], n.Logged())
		}
		if strings.Contains(n.Logged(), "DATA RACE") {
			t.Errorf("a data race in %s", args[0])
		}
	})

	return n
}

// Takes waits until the process takes requests. It returns false if the process ended first.
func (n *Node) Takes() bool {
	n.T.Helper()
	select {
	case <-n.taking:
		return true
	case <-n.Exited:
		return false
	case <-time.After(2 * time.Minute):
		n.T.Fatalf("the process takes no calls after 2 minutes:\n%s", n.Logged())
		return false
	}
}

// Ended reports whether the process has ended, without waiting.
func (n *Node) Ended() bool {
	select {
	case <-n.Exited:
		return true
	default:
		return false
	}
}

// read collects the process's log, and finds in it the addresses it listens at.
func (n *Node) read(stderr io.Reader) {
	defer close(n.Exited)
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		n.mu.Lock()
		n.log.Write(append(lines.Bytes(), '\n'))
		n.mu.Unlock()

		var line struct {
			Msg    string `json:"msg"`
			Listen string `json:"listen"`
			Ops    string `json:"ops_listen"`
		}

		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "taking requests" {
			n.Addr, n.Ops = line.Listen, line.Ops
			close(n.taking)
		}
	}
}

// Logged returns what the process has logged so far.
func (n *Node) Logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// stdout keeps what a process prints.
type stdout struct{ *Node }

func (s stdout) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

// printed returns what the process has printed so far.
func (n *Node) printed() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out.String()
}

// StartServer starts a server, and waits until it takes requests.
func StartServer(t *testing.T, data, addr string) *Node {
	t.Helper()
	return Launch(t, data, addr, "server", "--name", "central")
}

// StartSidecar starts a sidecar of a server, and waits until it takes requests.
func StartSidecar(t *testing.T, data, upstream string, more ...string) *Node {
	t.Helper()
	args := append([]string{"sidecar", "--name", "pod-1", "--upstream", "http://" + upstream}, more...)

	return Launch(t, data, "127.0.0.1:0", args...)
}

// Kill ends the process immediately, as the kernel would when memory runs out.
func (n *Node) Kill() {
	n.Killed = true
	_ = n.Cmd.Process.Signal(syscall.SIGKILL)
	<-n.Exited
	_ = n.Cmd.Wait()
}

// Stop asks the process to end and checks that it exits cleanly.
func (n *Node) Stop() {
	n.T.Helper()
	if err := n.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.T.Fatal(err)
	}
	select {
	case <-n.Exited:
	case <-time.After(25 * time.Second):
		n.T.Fatalf("the process did not end within 25 s of SIGTERM:\n%s", n.Logged())
	}
	if err := n.Cmd.Wait(); err != nil {
		n.T.Fatalf("SIGTERM: %v\n%s", err, n.Logged())
	}
}

// FreePort returns an address at which nothing listens, and nothing will by chance. The
// port is below those that the kernel assigns, so it stays free while the process for it
// is not running. No port is returned twice, not even by two runs of tests.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		given, err := net.Listen("unix", fmt.Sprintf("@promptspool-test-port-%d", port))
		if err != nil {
			continue
		}
		givenPorts.Store(port, given)
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// givenPorts holds a socket for each port that was returned. No other process can have one of
// the same name until this one ends.
var givenPorts sync.Map

// BeginPlain starts PlainBinary, also in a test that watches for races, and does not wait.
func BeginPlain(t testing.TB, data, addr string, args ...string) *Node {
	t.Helper()
	program, err := PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	return Begin(t, program, nil, data, addr, args...)
}

// StartPlainServer starts a server of PlainBinary on an empty folder.
func StartPlainServer(t *testing.T, addr string) *Node {
	t.Helper()
	n := BeginPlain(t, t.TempDir(), addr, "server", "--name", "central")
	if !n.Takes() {
		t.Fatal("the server does not start")
	}
	return n
}

// DiedOf waits for the process's end and returns the signal that ended it, -1 if it ended
// itself.
func (n *Node) DiedOf() syscall.Signal {
	n.T.Helper()
	<-n.Exited
	if n.Cmd.ProcessState == nil {
		_ = n.Cmd.Wait()
	}
	if log := n.Logged(); strings.Contains(log, "panic: ") || strings.Contains(log, "fatal error: ") {
		n.T.Errorf("the process panicked:\n%s", log)
	}

	return n.Cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}

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
