package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/postgres/postgrestest"
	"promptspool/spool/disktest"
)

func TestMain(m *testing.M) {
	disktest.Main()
	if runHelper() {
		return
	}
	if err := errors.Join(ownFolder(), compareCalls()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A process with the race detector waits a second at its end, in case that another thread has something to report.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=20")
	code := postgrestest.Main(m)
	stopChromium()
	_ = os.RemoveAll(folder)
	os.Exit(differences.report(code))
}

// build compiles the command and returns where it lies until the tests end.
func build(name string, flags ...string) (string, error) {
	path := filepath.Join(folder, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, "promptspool/cmd/promptspool")...)

	// Only the race detector needs cgo; without it, most packages are compiled already.
	cgo := "CGO_ENABLED=0"
	if slices.Contains(flags, "-race") {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo)

	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the binary does not build: %w\n%s", err, out)
	}
	return path, nil
}

// racingBinary is the command built with the race detector, which takes several times the processor.
var racingBinary = sync.OnceValues(func() (string, error) { return build("promptspool-race", "-race") })

// watched are the tests that called watchForRaces.
var watched sync.Map

// watchForRaces lets a test's processes run with the race detector: where many callers, kills and both roles meet.
func watchForRaces(t *testing.T) {
	t.Helper()
	watched.Store(t, true)
	t.Cleanup(func() { watched.Delete(t) })
}

// program is the binary that a test's processes run.
func program(t testing.TB) string {
	t.Helper()
	build := plainBinary
	if _, ok := watched.Load(t); ok {
		build = racingBinary
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// adminKey is of the account default, made by PROMPTSPOOL_BOOTSTRAP_KEY.
const adminKey = "a-bootstrap-key-of-more-than-thirty-two-characters"

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
	taking chan struct{} // closed when it takes calls
	eof    chan struct{} // closed when it has ended
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

// begin starts a binary with more variables in its environment, and does not wait for it.
func begin(t testing.TB, program string, env []string, data, addr string, args ...string) *node {
	t.Helper()
	n := &node{t: t, data: data, taking: make(chan struct{}), eof: make(chan struct{})}
	n.cmd = exec.Command(program, append(args, "--data", data, "--listen", addr, "--ops-listen", "127.0.0.1:0", "--log-format", "json")...)
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

// takes waits until the process takes calls, or says false if it ended before.
func (n *node) takes() bool {
	n.t.Helper()
	select {
	case <-n.taking:
		return true
	case <-n.eof:
		return false
	case <-time.After(2 * time.Minute):
		n.t.Fatalf("it takes no calls:\n%s", n.logged())
		return false
	}
}

// ended says whether the process has ended, without waiting.
func (n *node) ended() bool {
	select {
	case <-n.eof:
		return true
	default:
		return false
	}
}

// read keeps the process's log, and finds in it where the process listens.
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
	return launch(t, data, "127.0.0.1:0", append([]string{"sidecar", "--name", "pod-1", "--upstream", "http://" + upstream}, more...)...)
}

// kill ends the process as the kernel would: at once.
func (n *node) kill() {
	n.killed = true
	_ = n.cmd.Process.Signal(syscall.SIGKILL)
	<-n.eof
	_ = n.cmd.Wait()
}

// stop asks the process to end and checks that it does so in order.
func (n *node) stop() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.t.Fatal(err)
	}
	select {
	case <-n.eof:
	case <-time.After(25 * time.Second):
		n.t.Fatalf("it did not end within 25 s of SIGTERM:\n%s", n.logged())
	}
	if err := n.cmd.Wait(); err != nil {
		n.t.Fatalf("SIGTERM: %v\n%s", err, n.logged())
	}
}

// reply is an answer of the API.
type reply struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   map[string]any
}

// call sends a request as an app would. body may be a string or anything that encodes.
func (n *node) call(method, path string, body any, header ...string) reply {
	n.t.Helper()
	r, err := n.try(method, path, body, header...)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (n *node) try(method, path string, body any, header ...string) (reply, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case []byte:
		reader = bytes.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return reply{}, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, "http://"+n.addr+path, reader)
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	r := reply{Status: res.StatusCode, Header: res.Header}
	if r.Body, err = io.ReadAll(res.Body); err != nil {
		return reply{}, err
	}
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber() // what was logged may hold numbers that no float64 can
	if err := d.Decode(&r.JSON); err != nil {
		return reply{}, fmt.Errorf("%d is answered by no JSON object: %q", r.Status, r.Body)
	}
	return r, nil
}

// track sends a write with a key in the body, and wants a 200. It returns the request's id if there is one.
func (n *node) track(path, key string, fields map[string]any) string {
	n.t.Helper()
	body := map[string]any{"api_key": key}
	for k, v := range fields {
		body[k] = v
	}
	r := n.call("POST", path, body)
	if r.Status != 200 || r.JSON["success"] != true {
		n.t.Fatalf("%s: %d %s", path, r.Status, r.Body)
	}
	id, _ := r.JSON["request_id"].(string)
	return id
}

// get is an authenticated GET.
func (n *node) get(path string) reply {
	n.t.Helper()
	return n.call("GET", path, nil, "X-API-KEY", adminKey)
}

// record waits until the server has a record of which enough is true, and returns it.
func (n *node) record(id string, enough func(wire.Record) bool) wire.Record {
	n.t.Helper()
	var rec wire.Record
	var last reply
	n.eventually(func() bool {
		last = n.get("/api/public/v2/requests/" + id)
		rec = wire.Record{}
		return last.Status == 200 && json.Unmarshal(last.Body, &rec) == nil && enough(rec)
	}, func() string { return fmt.Sprintf("record %s: %d %s", id, last.Status, last.Body) })
	return rec
}

// events says that a record's history has so many.
func events(count int) func(wire.Record) bool {
	return func(r wire.Record) bool { return len(r.Events) == count }
}

// total is how many records the server finds.
func (n *node) total(search any) int {
	n.t.Helper()
	return n.totalOf(adminKey, search)
}

// totalOf is total for another key.
func (n *node) totalOf(key string, search any) int {
	n.t.Helper()
	r := n.call("POST", "/api/public/v2/requests/search", search, "X-API-KEY", key)
	if r.Status != 200 {
		n.t.Fatalf("search: %d %s", r.Status, r.Body)
	}
	total, err := r.JSON["total"].(json.Number).Int64()
	if err != nil {
		n.t.Fatal(err)
	}
	return int(total)
}

// spoolStatus is what a sidecar says of its spool.
func (n *node) spoolStatus() map[string]any {
	n.t.Helper()
	status, err := n.trySpoolStatus()
	if err != nil {
		n.t.Fatal(err)
	}
	return status
}

func (n *node) trySpoolStatus() (map[string]any, error) {
	res, err := http.Get("http://" + n.ops + "/statusz")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	var status struct{ Spool map[string]any }
	err = json.NewDecoder(res.Body).Decode(&status)
	return status.Spool, err
}

// emptied waits until everything in the spool was delivered or set aside, and fails when nothing leaves it for 30 s.
func (n *node) emptied() {
	n.t.Helper()
	n.whileItMoves(func() bool { return n.spoolStatus()["events"] == 0.0 }, func() any { return n.spoolStatus()["frontier"] },
		func() string { return fmt.Sprint("the spool does not empty: ", n.spoolStatus()) })
}

// whileItMoves waits for a condition for as long as the place that it is at is another one every 30 s, and fails with what it was told last.
func (n *node) whileItMoves(condition func() bool, place func() any, told func() string) {
	n.t.Helper()
	for last := any(nil); !condition(); {
		now := place()
		if now == last {
			n.t.Fatal(told())
		}
		last = now
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && !condition(); {
			pauseFor(10 * time.Millisecond)
		}
	}
}

// eventually waits for a condition, and fails with what it was told last.
func (n *node) eventually(condition func() bool, told func() string) {
	n.t.Helper()
	deadline := time.After(2 * time.Minute) // a busy machine is no fault
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			n.t.Fatal(told())
		}
	}
}

// freePort is an address where nobody listens, and nobody will by chance: it lies below the ports that the kernel gives to those
// who ask for any, so that it stays free while a process that is to listen there is not running. None is given twice.
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

// runCommand runs a command to its end and returns what it printed, with its exit code.
func runCommand(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(program(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// said is what a command printed, and its exit code.
type said struct {
	Code     int
	Out, Err string
}

// say runs a command as it is, without a key.
func say(t *testing.T, args ...string) said {
	t.Helper()
	out, errs, code := runCommand(t, nil, args...)
	return said{code, out, errs}
}

// written writes a file into a folder of the test's own and returns its path.
func written(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func score(id string, value int) map[string]any {
	return map[string]any{"request_id": id, "score": value}
}

// filesHolding lists the files below dir in which a text stands.
func filesHolding(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := disktest.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
