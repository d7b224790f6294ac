//go:build linux

package cost

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
	"promptspool/metrics/cputimetest"
)

// The bounds of large bodies: of their memory, and of what another account notices.
const (
	shapeLarge  = 31 << 20
	shapeMemory = 3         // of memory beyond idle, to the body
	shapeSlack  = 128 << 20 // garbage until it is collected, and what a call takes whatever its size
	shapeDelay  = time.Second
)

// others are another account's callers, who write small requests all the time.
type others struct {
	p       target
	key     string
	stopped chan struct{}
	took    chan []time.Duration
	refused atomic.Pointer[string]
}

// startOthers makes another account, which begins to write.
func startOthers(t *testing.T, p target, server *harness.Node) *others {
	t.Helper()
	out, errs, code := harness.RunWith(t, nil, "keys", "create", "--data", server.Data, "--project", "other",
		"--scope", "app", "-o", "json")
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(out), &made); code != 0 || err != nil || made.Key == "" {
		t.Fatal(out, errs, err)
	}

	o := &others{p: p, key: made.Key, stopped: make(chan struct{}), took: make(chan []time.Duration, 1)}
	go o.write()

	return o
}

func (o *others) write() {
	var took []time.Duration
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		body := `{"request_id":"` + wire.NewID() + `","function_name":"f","kwargs":{},"request_response":{},` +
			`"request_start_time":1,"request_end_time":2}`
		begun := time.Now()
		if status, answer := o.p.call("POST", "/track-request", body, "X-API-KEY", o.key); status != 200 {
			o.refused.Store(new(fmt.Sprintf("%d %.200s", status, answer)))
		}
		took = append(took, time.Since(begun))

		select {
		case <-o.stopped:
			o.took <- took
			return
		case <-tick.C:
		}
	}
}

// end returns how long all but a hundredth of the writes took at most, how many they were, and why
// one was refused; "" if none was.
func (o *others) end() (p99 time.Duration, writes int, refused string) {
	close(o.stopped)
	took := <-o.took
	slices.Sort(took)
	if why := o.refused.Load(); why != nil {
		refused = *why
	}

	return took[len(took)*99/100], len(took), refused
}

// largely is what a large body of a shape cost a fresh server.
type largely struct {
	*shaped
	memory  int64         // beyond idle, at most
	delay   time.Duration // p99 of another account's writes
	writes  int
	refused string // why one of these was refused
}

// perByte returns the memory for each byte of the body.
func (l largely) perByte() float64 {
	if l.shaped == nil {
		return 0
	}

	return float64(l.memory) / float64(l.size)
}

func (l largely) String() string {
	return fmt.Sprintf("%s, %.1f MB, %d: accepted for %.3f s/MB, shown for %.3f s/MB, %d MiB, which is "+
		"%.1f times its bytes, p99 of another account's %d writes %v",
		l.shape.name, float64(l.size)/1e6, l.status, l.perMB(accepting), l.perMB(showing), l.memory>>20, l.perByte(),
		l.writes, l.delay.Round(time.Millisecond/10))
}

// fault returns which bound the shape broke, "" if none.
func (l largely) fault() string {
	fault := l.shaped.fault()
	if l.memory > shapeMemory*int64(l.size)+shapeSlack {
		fault += fmt.Sprintf("; it takes %d MiB of memory for %d MB", l.memory>>20, l.size/1e6)
	}
	if l.delay > shapeDelay {
		fault += fmt.Sprintf("; another account's writes take %v", l.delay)
	}
	if l.refused != "" {
		fault += "; another account's write is refused: " + l.refused
	}

	return strings.TrimPrefix(fault, "; ")
}

// largeTrial sends a large body of a shape to a fresh server, beside which another account writes.
func largeTrial(t *testing.T, s *shape, size int) (l largely) {
	t.Helper()
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	defer server.Kill()
	p := shapeTarget(t, server)
	m := meter{t, server.Cmd.Process.Pid}
	m.rest()

	idle, peak := m.memory(), harness.WatchMemory(t, server)
	o := startOthers(t, p, server)
	l.shaped = m.trial(p, s, size)
	l.delay, l.writes, l.refused = o.end()
	l.memory = peak() - idle

	return l
}

// A server that is dear, or keeps what it is sent many times, must be noticed, or the harness
// measures nothing.
func TestADearServerIsNoticed(t *testing.T) {
	t.Parallel()
	p, m := startBadServer(t, "dear")
	list := filling{before: "[", element: "0", after: "]"}
	faults := map[string]string{"/time": "to accept it takes", "/memory": "of memory", "/cheap": ""}
	for path, want := range faults {
		l := largely{}
		idle := m.memory()
		s := &shape{name: path, method: "POST", path: path, body: list.text}
		l.shaped = m.judgeShape(p, s, 1<<20)
		l.memory = m.memory() - idle
		if fault := l.fault(); want == "" && fault != "" || !strings.Contains(fault, want) {
			t.Errorf("%s: the fault is %q, want %q", path, fault, want)
		}
	}
}

// runDear answers calls after work of 0.4 s for a MB, or with 200 times their bytes of memory.
func runDear() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())

	var kept [][]byte
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/time":
			enough := time.Duration(len(body)) * 400 * time.Nanosecond
			for before := cputimetest.Used(); cputimetest.Used()-before < enough; {
			}
		case "/memory":
			kept = append(kept, slices.Repeat(body, 200))
		}
		fmt.Fprintln(w, len(kept))
	}))
}
