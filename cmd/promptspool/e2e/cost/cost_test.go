//go:build linux

package cost

import (
	"bytes"
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
	"promptspool/cmd/promptspool/e2e/harness"
)

// What a caller sends may cost processor time and memory in proportion to its bytes, on
// every route and page. The scenes here send adversarial input of size n and 4n to the
// real binary, and compare.
//
// The attacks by name are those that take several calls, or a grammar of their own; for
// lists and maps of a body, shapes are generated (see shape_test.go). To add a case, add
// a line to attacks in attacks_test.go. The brief ones are part of `make test`, all of
// them of `make soak`.

const (
	costTimeMin   = 60 * time.Millisecond // of a call of size n, so that other work beside it does not matter
	costTimeBrief = 15 * time.Millisecond // the same in the short form
	costRatioMax  = 6                     // of processor time, of 4n to n
	costMemoryMax = 8                     // of memory beyond idle, to the unpacked body
	costTries     = 3
	costSlack     = 96 << 20 // bytes that garbage may take before the collector runs
	costSizeMax   = 6 << 20  // of a body of size n; the server must accept a body of 4n
	crowdCallers  = 16
	crowdSize     = 2 << 20 // of each one's body
	crowdBrief    = 512 << 10
	crowdTime     = 300 * time.Millisecond // that each one may take of the processors, about
	serverMax     = 1 << 30
	leftMax       = time.Second // of processor time, for work to end after its caller left
)

// attack is one kind of adversarial input.
type attack struct {
	name string
	// send sends input of n parts to a target, and returns its size in unpacked bytes.
	send func(p target, n int) int
	// n is the number of parts to begin with.
	n int
	// most bounds the parts; 0: as many as a measurement takes.
	most int
	// brief attacks are part of the short form: they found something once, or represent
	// their kind.
	brief bool
}

// target is what is attacked.
type target struct {
	t      testing.TB
	addr   string
	cookie string // of somebody who is signed in
	csrf   string // for that session's forms
	client *http.Client
	// partly lets the target be a sidecar, which serves only some of the routes.
	partly bool
}

// in returns the target for a subtest.
func (p target) in(t testing.TB) target {
	p.t = t

	return p
}

// call sends a request and reads its answer to the end.
func (p target) call(method, path, body string, header ...string) (status int, answer string) {
	p.t.Helper()
	req, err := http.NewRequest(method, "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", harness.AdminKey)
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
	missing := p.partly && res.StatusCode == http.StatusNotImplemented
	if res.StatusCode >= 500 && res.StatusCode != http.StatusServiceUnavailable && !missing {
		p.t.Errorf("%s %s: %d %.300s", method, path, res.StatusCode, text)
	}

	return res.StatusCode, string(text)
}

// signIn signs up the first person of a server and keeps the cookie.
func (p *target) signIn(server *harness.Node) {
	form := url.Values{"code": {harness.SetupCode(server)}, "email": {"ann@example.com"},
		"password": {"correct horse battery"}}
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := p.client.PostForm("http://"+p.addr+"/sign-up", form)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range res.Cookies() {
		if !strings.Contains(c.Name, "-key") { // which has the project's first key
			p.cookie = c.Name + "=" + c.Value
		}
	}
	if p.cookie == "" {
		p.t.Fatalf("signing up: %s", res.Status)
	}

	_, page := p.call("GET", "/password", "")
	_, field, found := strings.Cut(page, `name="csrf" value="`)
	if !found {
		p.t.Fatalf("no token in %.300s", page)
	}
	p.csrf, _, _ = strings.Cut(field, `"`)
}

// submit sends a form as the person who is signed in, and returns its size.
func (p target) submit(path string, form url.Values) int {
	form.Set("csrf", p.csrf)
	body := form.Encode()
	p.call("POST", path, body, "Content-Type", "application/x-www-form-urlencoded")

	return len(body)
}

func TestCostGrowsWithTheBytesOnly(t *testing.T) {
	t.Parallel()
	// Below a base path, addresses are put into each page as well.
	server := harness.BeginPlain(t, t.TempDir(), "127.0.0.1:0", "server", "--public-url", "http://localhost/base")
	if !server.Takes() {
		t.Fatal("the server does not start")
	}
	p := target{t: t, addr: server.Addr, client: harness.OwnClient(t, crowdCallers)}
	p.signIn(server)
	m := meter{t, server.Cmd.Process.Pid}
	m.rest()
	peak := harness.WatchMemory(t, server)

	long := harness.Soak(t, 1) > 0
	least, size := costTimeBrief, crowdBrief
	if long {
		least, size = costTimeMin, crowdSize
	}
	for _, a := range attacks {
		if !long && !a.brief {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			sizes, fault := m.in(t).judge(p.in(t), a, least)
			t.Logf("%s, %s", a.name, sizes)
			if fault != "" {
				t.Error(fault)
			}
		})
	}

	t.Run("leaving", func(t *testing.T) { workEndsWithItsCaller(p.in(t), m.in(t)) })

	// Sixteen callers together stay within the memory of a server.
	for _, a := range attacks {
		if !long && a.name != "write: text parts of an answer" {
			continue
		}
		t.Run("crowd, "+a.name, func(t *testing.T) {
			peak := harness.WatchMemory(t, server)
			crowdOf(p.in(t), a, size, m.in(t))
			t.Logf("%s, sixteen at once: %d MiB", a.name, peak()>>20)
		})
	}
	most := peak()
	t.Logf("%d MiB at most", most>>20)
	if most > serverMax {
		t.Errorf("the server took %d MiB", most>>20)
	}
}

// crowdOf carries out an attack sixteen times together. Each is of the given bytes, or of
// as many as take crowdTime of the processes.
func crowdOf(p target, a attack, bytes int, processes ...meter) {
	// The first size is far from the wanted one: there, fixed costs weigh most.
	n := a.n
	for range 2 {
		before := spentBy(processes)
		size := a.send(p, n)
		took := spentBy(processes) - before
		n = max(1, min(n*bytes/max(size, 1), int(int64(n)*int64(crowdTime)/int64(max(took, crowdTime/100)))))
		if a.most > 0 {
			n = min(n, a.most)
		}
	}

	var callers sync.WaitGroup
	for range crowdCallers {
		callers.Go(func() { a.send(p, n) })
	}
	callers.Wait()
}

// spentBy returns the processor time of all processes.
func spentBy(processes []meter) (spent time.Duration) {
	for _, m := range processes {
		spent += m.processor()
	}

	return spent
}

// The same against a server that reads everything again for each piece must be noticed, or
// the harness measures nothing.
func TestAQuadraticServerIsNoticed(t *testing.T) {
	t.Parallel()
	p, m := startBadServer(t, "quadratic")
	a := attack{name: "many parts", n: 1000, send: func(p target, n int) int {
		body := strings.Repeat("abcdefghijklmnop", n)
		p.call("POST", "/", body)
		return len(body)
	}}
	sizes, fault := m.judge(p, a, costTimeBrief)
	if !strings.Contains(fault, "grows faster") {
		t.Errorf("nothing was noticed: %v", sizes)
	}
}

// startBadServer starts this test's own program as a server with a fault that must be noticed.
func startBadServer(t *testing.T, helper string) (target, meter) {
	t.Helper()
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), harness.HelperVariable+"="+helper)
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

	return target{t: t, addr: addr, client: harness.OwnClient(t, 1)}, meter{t, program.Process.Pid}
}

// runQuadratic answers calls after reading all that came before each piece of their bodies.
func runQuadratic() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(ln.Addr())
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		found := 0
		// Byte by byte: a vectored search is so fast that the fixed cost of a call hides it on a busy machine.
		for end := 16; end <= len(body); end += 16 {
			for _, b := range body[:end] {
				if b == '#' {
					found++
				}
			}
		}
		fmt.Fprintln(w, found)
	}))
}

// workEndsWithItsCaller checks that work ends when its caller has gone.
func workEndsWithItsCaller(p target, m meter) {
	p.t.Helper()
	publish(p, "spin",
		"{% for a in range(99999) %}{% for b in range(99999) %}{% set c = a * b %}{% endfor %}{% endfor %}")
	for range 20 {
		p.call("POST", "/rest/track-request", callsBody(200<<10))
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
		ctx, leave := context.WithTimeout(p.t.Context(), 50*time.Millisecond)
		res, err := p.client.Do(send(ctx))
		if err == nil {
			_ = res.Body.Close()
		}
		leave()

		// Mostly it ends long before. The bound is in processor time, for others may need
		// the processor too.
		began, left := time.Now(), m.processor()
		for m.isBusy() && m.processor()-left <= leftMax {
		}
		took := m.processor() - left
		p.t.Logf("%s ends after %v of processor time, and within %v, of its caller's leaving",
			name, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
		if took > leftMax {
			p.t.Errorf("%s: the work goes on for %v after its caller left", name, took)
		}
	}
}

func request(ctx context.Context, p target, method, path, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.addr+path, bytes.NewReader([]byte(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("X-API-KEY", harness.AdminKey)
	req.Header.Set("Cookie", p.cookie)

	return req
}

// publish makes a version of a jinja2 template.
func publish(p target, name, text string) int {
	body := `{"prompt_template":{"prompt_name":` + quoted(name) +
		`},"prompt_version":{"prompt_template":{"type":"chat","messages":[{"role":"user",` +
		`"template_format":"jinja2","content":[{"type":"text","text":` + quoted(text) + `}]}]}}}`
	status, answer := p.call("POST", "/rest/prompt-templates", body)
	if status >= 300 && status != http.StatusServiceUnavailable && !p.partly {
		p.t.Errorf("publishing %s: %d %.300s", name, status, answer)
	}

	return len(body)
}

// callsBody returns a request with a prompt of about size bytes.
func callsBody(size int) string {
	return `{"request_id":"` + wire.NewID() + `","function_name":"f","kwargs":{"messages":[{"role":"user","content":` +
		quoted(strings.Repeat("all work and no play ", size/21)) + `}]},"request_response":{}}`
}
