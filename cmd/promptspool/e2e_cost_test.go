package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/api/wire"
)

// What somebody sends may cost processor time and memory in proportion to its bytes, on every route and page. The scenes
// here send adversarial input of size n and 4n to the real binary, and compare.
//
// To add a case, add a line to attacks in e2e_cost_attacks_test.go.

const (
	costTimeMin   = 60 * time.Millisecond // of a call of size n, so that the kernel's clock of 10 ms can tell
	costRatioMax  = 6                     // of processor time, of 4n to n
	costMemoryMax = 8                     // of memory beyond idle, to the unpacked body
	costTries     = 3
	costSlack     = 96 << 20 // bytes that garbage may take before the collector runs
	costSizeMax   = 6 << 20  // of a body of size n; that of 4n must be taken
	crowdCallers  = 16
	crowdSize     = 2 << 20 // of each one's body
	serverMax     = 1 << 30
)

// attack is one kind of adversarial input.
type attack struct {
	name string
	// send sends input of n parts to a target, and returns its size in unpacked bytes.
	send func(p target, n int) int
	// n is with how many parts to begin.
	n int
	// most is how many parts n may become; 0: as many as it takes to be measured.
	most int
}

// target is what is attacked.
type target struct {
	t      testing.TB
	addr   string
	cookie string // of somebody who is signed in
	client *http.Client
}

// call sends a request and reads its answer to the end.
func (p target) call(method, path, body string, header ...string) (status int, answer string) {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", adminKey)
	req.Header.Set("Cookie", p.cookie)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	res, err := p.client.Do(req)
	if err != nil {
		p.t.Errorf("%s %s: %v", method, path, err)
		return 0, ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Errorf("%s %s: %v", method, path, err)
	}
	if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable {
		p.t.Errorf("%s %s: %d %.300s", method, path, res.StatusCode, text)
	}

	return res.StatusCode, string(text)
}

// signIn makes the cookie of the first person of a server.
func (p *target) signIn(server *node) {
	form := url.Values{"code": {setupCode(server)}, "email": {"ann@example.com"}, "password": {"correct horse battery"}}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := p.client.PostForm("http://"+p.addr+"/sign-up", form)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range res.Cookies() {
		p.cookie = c.Name + "=" + c.Value
	}
	if p.cookie == "" {
		p.t.Fatalf("signing up: %s", res.Status)
	}
}

// meter reads what a process has used.
type meter struct {
	t   testing.TB
	pid int
}

func (m meter) processor() time.Duration { return cpuOfProcess(m.t, m.pid) }

// memory is what is the process's own, without the files that it maps.
func (m meter) memory() int64 { return memoryOfProcess(m.t, m.pid, "RssAnon") }

// costs is what a call took.
type costs struct {
	processor time.Duration
	memory    int64 // beyond what the process had before
	bytes     int   // of the unpacked body
	n         int
}

func (c costs) String() string {
	return fmt.Sprintf("%d parts, %d KB: %v, %d MiB", c.n, c.bytes>>10, c.processor, c.memory>>20)
}

// measure carries out an attack. What it left to the process's background is counted too: it is waited for.
func (m meter) measure(p target, a attack, n int) costs {
	before, held := m.processor(), m.memory()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		most := held
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
				most = max(most, m.memory())
			}
		}
	}()

	size := a.send(p, n)
	m.rest()
	close(stop)

	return costs{processor: m.processor() - before, memory: <-peak - held, bytes: size, n: n}
}

// rest waits until the process does nothing.
func (m meter) rest() {
	for last := m.processor(); ; {
		pauseFor(30 * time.Millisecond)
		now := m.processor()
		if now-last <= 10*time.Millisecond {
			return
		}
		last = now
	}
}

// judge compares an attack of size n with one of 4n. It returns what is wrong; "" if nothing is.
func (m meter) judge(p target, a attack) (once, fourfold costs, fault string) {
	for n := a.n; ; n *= 2 {
		once = m.measure(p, a, n)
		if once.processor >= costTimeMin || once.bytes > costSizeMax/2 || a.most > 0 && 2*n > a.most {
			break
		}
	}
	// What the process does in its background, such as packing and collecting garbage, falls into one measurement or
	// another. What grows faster than its bytes does so each time, whichever of the smaller ones it is compared with.
	for try := range costTries {
		if try > 0 {
			if again := m.measure(p, a, once.n); again.processor > once.processor {
				once = again
			}
		}

		fourfold, fault = m.measure(p, a, 4*once.n), ""
		if fourfold.processor > costRatioMax*max(once.processor, costTimeMin) {
			fault = fmt.Sprintf("processor time grows faster than the bytes: %v, then %v", once, fourfold)
		}
		if fourfold.memory > costMemoryMax*int64(fourfold.bytes)+costSlack {
			fault += fmt.Sprintf(" it takes more than %d times its bytes of memory: %v", costMemoryMax, fourfold)
		}
		if fault == "" {
			break
		}
	}

	return once, fourfold, fault
}

func TestCostGrowsWithTheBytesOnly(t *testing.T) {
	t.Parallel()
	server := startPlainServer(t, "127.0.0.1:0")
	p := target{t: t, addr: server.addr, client: ownClient(t, 1)}
	p.signIn(server)
	m := meter{t, server.cmd.Process.Pid}
	m.rest()

	for _, a := range attacks {
		once, fourfold, fault := m.judge(p, a)
		t.Logf("%-44s %v; %v", a.name, once, fourfold)
		if fault != "" {
			t.Errorf("%s: %s", a.name, fault)
		}
	}
}

// The same against a server that joins texts piece by piece must be noticed, or the harness measures nothing.
func TestAQuadraticServerIsNoticed(t *testing.T) {
	t.Parallel()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), helperVariable+"=quadratic")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = program.Process.Kill(), program.Wait() })
	var addr string
	if _, err := fmt.Fscan(out, &addr); err != nil {
		t.Fatal(err)
	}

	p := target{t: t, addr: addr, client: ownClient(t, 1)}
	a := attack{name: "many parts", n: 4000, send: func(p target, n int) int {
		body := strings.Repeat("abcdefghijklmnop", n)
		p.call("POST", "/", body)
		return len(body)
	}}
	if once, fourfold, fault := (meter{t, program.Process.Pid}).judge(p, a); !strings.Contains(fault, "grows faster") {
		t.Errorf("nothing was noticed: %v; %v", once, fourfold)
	}
}

// runQuadratic answers calls after joining their bodies piece by piece.
func runQuadratic() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := ""
		for ; len(body) >= 16; body = body[16:] {
			text += string(body[:16])
		}
		fmt.Fprintln(w, len(text))
	}))
}

// Sixteen callers at once stay within what a server may take, and nobody else waits long for them. In the long form each
// attack gets its crowd.
func TestACrowdOfAttackersIsBounded(t *testing.T) {
	t.Parallel()
	server := startPlainServer(t, "127.0.0.1:0")
	p := target{t: t, addr: server.addr, client: ownClient(t, crowdCallers)}
	p.signIn(server)
	memory := watchMemory(t, server)

	chosen := attacks[1:3]
	if soak(t, 1) > 0 {
		chosen = attacks
	}
	for _, a := range chosen {
		n := a.n
		for size := 0; size < crowdSize/2; n *= 2 {
			size = cmp.Or(a.send(p, n), crowdSize)
		}

		var callers sync.WaitGroup
		for range crowdCallers {
			callers.Go(func() { a.send(p, n) })
		}
		callers.Wait()
	}

	peak := memory()
	t.Logf("%d MiB at most", peak>>20)
	if peak > serverMax {
		t.Errorf("the server took %d MiB", peak>>20)
	}
}

// Work for a caller who has gone ends.
func TestWorkEndsWhenItsCallerIsGone(t *testing.T) {
	t.Parallel()
	server := startPlainServer(t, "127.0.0.1:0")
	p := target{t: t, addr: server.addr, client: ownClient(t, 1)}
	p.signIn(server)
	m := meter{t, server.cmd.Process.Pid}
	publish(p, "spin", "{% for a in range(99999) %}{% for b in range(99999) %}{% set c = a * b %}{% endfor %}{% endfor %}")
	for range 20 {
		p.call("POST", "/rest/track-request", calls(200<<10))
	}
	m.rest()

	for name, send := range map[string]func(ctx context.Context) *http.Request{
		"a template that takes long": func(ctx context.Context) *http.Request {
			return request(ctx, p, "POST", "/prompt-templates/spin", `{"input_variables":{"a":1}}`)
		},
		"a search of all texts": func(ctx context.Context) *http.Request {
			return request(ctx, p, "POST", "/api/public/v2/requests/search", `{"q":"nowhere to be found"}`)
		},
		"an export": func(ctx context.Context) *http.Request {
			return request(ctx, p, "GET", "/requests/export", "")
		},
	} {
		ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
		res, err := p.client.Do(send(ctx))
		if err == nil {
			_ = res.Body.Close()
		}
		leave()

		pauseFor(time.Second)
		before := m.processor()
		pauseFor(500 * time.Millisecond)
		if spent := m.processor() - before; spent > 150*time.Millisecond {
			t.Errorf("%s: a second after its caller left it still takes %v of 500ms", name, spent)
		}
	}
}

func request(ctx context.Context, p target, method, path, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path, bytes.NewReader([]byte(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", adminKey)
	req.Header.Set("Cookie", p.cookie)

	return req
}

// publish makes a version of a jinja2 template.
func publish(p target, name, text string) int {
	body := `{"prompt_template":{"prompt_name":` + quoted(name) + `},"prompt_version":{"prompt_template":{"type":"chat",` +
		`"messages":[{"role":"user","template_format":"jinja2","content":[{"type":"text","text":` + quoted(text) + `}]}]}}}`
	if status, answer := p.call("POST", "/rest/prompt-templates", body); status >= 300 {
		p.t.Errorf("publishing %s: %d %.300s", name, status, answer)
	}

	return len(body)
}

// calls is a request with a prompt of so many bytes.
func calls(size int) string {
	return `{"request_id":"` + wire.NewID() + `","function_name":"f","kwargs":{"messages":[{"role":"user","content":` +
		quoted(strings.Repeat("all work and no play ", size/21)) + `}]},"request_response":{}}`
}
