//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// node is one running process.
type node struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string // of its API
	ops  string
	data string

	mu     sync.Mutex
	log    bytes.Buffer  // under mu; of stderr
	out    bytes.Buffer  // under mu; of stdout
	killed bool          // by kill
	taking chan struct{} // closed when it logs that it takes calls
	eof    chan struct{} // closed when its log ends, because the process did
}

// launch starts the binary and waits until it takes calls.
func launch(t *testing.T, data, addr string, args ...string) *node {
	t.Helper()
	n := begin(t, program(t), nil, data, addr, args...)
	if !n.takes() {
		t.Fatalf("%s ended before it took calls:\n%s", args[0], n.logged())
	}
	return n
}

// begin starts a binary with additional environment variables, and does not wait for it.
func begin(t testing.TB, program string, env []string, data, addr string, args ...string) *node {
	t.Helper()
	n := &node{t: t, data: data, taking: make(chan struct{}), eof: make(chan struct{})}
	args = append(args, "--data", data, "--listen", addr, "--ops-listen", "127.0.0.1:0", "--log-format", "json")
	n.cmd = exec.Command(program, args...)
	n.cmd.Env = append(append(os.Environ(), "PROMPTSPOOL_BOOTSTRAP_KEY="+adminKey), env...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // none outlives tests that are killed

	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	n.cmd.Stdout = stdout{n}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}

	go n.read(stderr)

	t.Cleanup(func() {
		if n.cmd.ProcessState == nil {
			n.kill()
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", args[0], n.logged())
		}
		if strings.Contains(n.logged(), "DATA RACE") {
			t.Errorf("a data race in %s", args[0])
		}
	})

	return n
}

// takes waits until the process takes calls. It returns false if the process ended first.
func (n *node) takes() bool {
	n.t.Helper()
	select {
	case <-n.taking:
		return true
	case <-n.eof:
		return false
	case <-time.After(2 * time.Minute):
		n.t.Fatalf("the process takes no calls after 2 minutes:\n%s", n.logged())
		return false
	}
}

// ended reports whether the process has ended, without waiting.
func (n *node) ended() bool {
	select {
	case <-n.eof:
		return true
	default:
		return false
	}
}

// read collects the process's log, and finds in it the addresses it listens at.
func (n *node) read(stderr io.Reader) {
	defer close(n.eof)
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

		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "taking calls" {
			n.addr, n.ops = line.Listen, line.Ops
			close(n.taking)
		}
	}
}

func (n *node) logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// stdout keeps what a process prints.
type stdout struct{ *node }

func (s stdout) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (n *node) printed() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.out.String()
}

func startServer(t *testing.T, data, addr string) *node {
	t.Helper()
	return launch(t, data, addr, "server", "--name", "central")
}

func startSidecar(t *testing.T, data, upstream string, more ...string) *node {
	t.Helper()
	args := append([]string{"sidecar", "--name", "pod-1", "--upstream", "http://" + upstream}, more...)

	return launch(t, data, "127.0.0.1:0", args...)
}

// kill ends the process immediately, as the kernel would when memory runs out.
func (n *node) kill() {
	n.killed = true
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	<-n.eof
	_ = n.cmd.Wait()
}

// stop asks the process to end and checks that it exits cleanly.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.eof:
	case <-time.After(25 * time.Second):
		n.t.Fatalf("the process did not end within 25 s of SIGTERM:\n%s", n.logged())
	}
	if err := n.cmd.Wait(); err != nil {
		n.t.Fatalf("SIGTERM: %v\n%s", err, n.logged())
	}
}

// freePort returns an address at which nothing listens, and nothing will by chance: the
// port is below those that the kernel assigns, so it stays free while the process for it
// is not running. No port is returned twice.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.IntN(12_000)
		if _, given := givenPorts.LoadOrStore(port, true); given {
			continue
		}
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

var givenPorts sync.Map
