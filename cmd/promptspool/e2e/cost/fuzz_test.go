//go:build linux

package cost

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
	"promptspool/cmd/promptspool/e2e/harness"
)

// Requests that are broken in every way come to a sidecar and a server, as they are
// shipped, on several connections. Both stay up and small, nothing panics, all calls of a
// good client beside them are answered 200, and what it wrote arrives.
func TestAFuzzerOnTheListenersHindersNobody(t *testing.T) {
	t.Parallel()
	server := &besieged{Node: harness.StartPlainServer(t, "127.0.0.1:0"), name: "server", memoryMax: 256 << 20}
	node := harness.BeginPlain(t, t.TempDir(), "127.0.0.1:0", "sidecar", "--upstream", "http://"+server.Addr)
	sidecar := &besieged{Node: node, name: "sidecar", memoryMax: 128 << 20}
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}
	r := server.Call("POST", "/rest/prompt-templates", harness.ChatOf2KB(siegeTemplate), "X-API-KEY", harness.AdminKey)
	if r.Status != 201 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}

	s := &siege{seed: 1, short: 120, long: harness.Soak(t, 1), patience: 10 * time.Second}
	if s.long > 0 {
		s.seed, s.patience = rand.Uint64(), time.Second
	}
	s.lay(sidecar, server)

	t.Logf("seed %d: %d broken requests were sent, %d answers came", s.seed, s.sent, s.answered)
	for _, fault := range s.faults {
		t.Error(fault)
	}
	for _, b := range []*besieged{sidecar, server} {
		if t.Failed() {
			return
		}
		slices.Sort(b.took)
		t.Logf("%s: %d good calls, half of them within %v, the slowest %v; "+
			"at most %d MiB anonymous memory, %d MiB resident",
			b.name, len(b.took), harness.Rounded(b.took[len(b.took)/2]), harness.Rounded(b.took[len(b.took)-1]),
			b.memory>>20, harness.MemoryOf(t, b.Node, "VmHWM")>>20)
	}

	// What the good client was promised has arrived.
	harness.Reached(t, 2*time.Minute, func() bool { return sidecar.Waiting() == 0 }, "the spool does not empty")
	for _, id := range s.written {
		if r := server.Get("/api/public/v2/requests/" + id); r.Status != 200 {
			t.Errorf("%s was answered 200, and the server says %d %s", id, r.Status, r.Body)
		}
	}

	sidecar.Stop()
	server.Stop()
}

// A handler that is weak against some bytes is found out, whichever its weakness.
func TestTheFuzzerSeesWeakness(t *testing.T) {
	t.Parallel()
	for weakness, want := range map[string]string{
		"":       "",
		"500":    "answers 500 to",
		"panics": "1 panics",
		"hangs":  "the good client",
		"grows":  "anonymous memory",
		// It has ended, or takes no connection, or its good client is not answered,
		// whichever is seen first.
		"ends": "the handler",
	} {
		env := []string{harness.HelperVariable + "=weak", "WEAK=" + weakness}
		node := harness.Begin(t, os.Args[0], env, t.TempDir(), "127.0.0.1:0", "handler")
		weak := &besieged{Node: node, name: "handler", memoryMax: 128 << 20}
		if !weak.Takes() {
			t.Fatal("the handler does not start")
		}

		s := &siege{seed: 1, short: 100, patience: 5 * time.Second}
		if weakness == "hangs" {
			s.patience = 300 * time.Millisecond
		}
		s.lay(weak)
		if got := strings.Join(s.faults, "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("weakness %q: found %q, want %q", weakness, got, want)
		}
		weak.Kill()
	}
}

// runWeak serves with a handler that has the weakness WEAK when a body is not ASCII.
func runWeak() {
	var panics int
	var held [][]byte
	var mu sync.Mutex
	handle := func(c *fasthttp.RequestCtx) {
		mu.Lock()
		defer mu.Unlock()
		c.SetContentType("application/json")
		c.SetBodyString(`{"success":true}`)
		if bytes.IndexFunc(c.PostBody(), func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
			return
		}

		switch os.Getenv("WEAK") {
		case "500":
			c.SetStatusCode(500)
		case "panics":
			panics = 1
		case "hangs":
			harness.PauseFor(time.Second)
		case "grows":
			held = append(held, bytes.Repeat([]byte("x"), 160<<20))
		case "ends":
			os.Exit(1)
		}
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ops, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	go func() {
		_ = fasthttp.Serve(ops, func(c *fasthttp.RequestCtx) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(c, "promptspool_panics_total %d\n", panics)
		})
	}()

	slog.New(slog.NewJSONHandler(os.Stderr, nil)).
		Info("taking requests", "listen", ln.Addr().String(), "ops_listen", ops.Addr().String())
	_ = (&fasthttp.Server{Handler: handle, Logger: log.New(io.Discard, "", 0)}).Serve(ln)
}

// siege sends broken requests to processes, and beside them those of a good client, until
// the time is over or something failed.
type siege struct {
	seed     uint64 // the same seed sends the same bytes
	short    int    // broken requests on each of two connections to each process, at least
	long     time.Duration
	patience time.Duration // within which a good call is answered 200

	mu             sync.Mutex
	faults         []string // under mu, as everything below; the first few
	sent, answered int
	written        []string // ids of the good client's requests
}

// besieged is one of the processes.
type besieged struct {
	*harness.Node
	name      string
	memoryMax int64 // bytes of anonymous memory
	took      []time.Duration
	memory    int64 // the most that was seen
}

func (s *siege) lay(all ...*besieged) {
	var attackers, clients sync.WaitGroup
	begun, over := time.Now(), make(chan struct{})
	for i, b := range slices.Concat(all, all) {
		attackers.Go(func() {
			random := rand.New(rand.NewPCG(s.seed, uint64(i)))
			for n := 0; (n < s.short || time.Since(begun) < s.long) && s.faultless(); n++ {
				s.attack(b, random)
			}
		})
	}
	for _, b := range all {
		clients.Go(func() { s.useWell(b, over) })
	}

	attackers.Wait()
	close(over)
	clients.Wait()

	for _, b := range all {
		switch {
		case b.Ended():
			s.fault("the %s has ended", b.name)
		case !s.faultless(): // it may not even answer
		default:
			if panics := b.Metric("promptspool_panics_total"); panics > 0 {
				s.fault("%v panics of the %s", panics, b.name)
			}
		}
	}
}

// fault records a failure; only the first few are kept.
func (s *siege) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < 5 {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

func (s *siege) faultless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults) == 0
}

// siegeTemplate is the template that the good client fetches.
const siegeTemplate = "team/besieged"

// useWell is the good client: it writes and fetches, one after the other, and watches the
// memory.
func (s *siege) useWell(b *besieged, over chan struct{}) {
	client := &http.Client{Timeout: s.patience, Transport: harness.Comparing(&http.Transport{})}
	defer client.CloseIdleConnections()
	for n := 0; ; n++ {
		path, id, body := "/prompt-templates/"+siegeTemplate, "", []byte(`{"label":"prod"}`)
		if n%2 == 0 {
			path, id = "/rest/track-request", wire.NewID()
			body = append(fmt.Appendf(nil, `{"request_id":%q,`, id), harness.BodyOf(500)[1:]...)
		}

		asked := time.Now()
		status, answer, err := postWith(client, b.Addr, path, body)
		if err != nil || status != 200 {
			s.fault("%s of the good client at the %s: %d %s, %v", path, b.name, status, answer, err)
			return
		}

		b.took = append(b.took, time.Since(asked))
		if b.memory = max(b.memory, harness.MemoryOf(b.T, b.Node, "RssAnon")); b.memory > b.memoryMax {
			s.fault("the %s holds %d bytes of anonymous memory", b.name, b.memory)
		}

		if id != "" {
			s.mu.Lock()
			s.written = append(s.written, id)
			s.mu.Unlock()
		}

		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func postWith(client *http.Client, addr, path string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequest("POST", "http://"+addr+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("X-API-KEY", harness.AdminKey)
	res, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}

// attack sends one or more broken requests, in pieces, and mostly reads what comes back.
// What random gives does not depend on what comes, so that a seed always sends the same
// bytes.
func (s *siege) attack(b *besieged, random *rand.Rand) {
	sent, piece, listens := broken(random), 1+random.IntN(4000), random.IntN(8) > 0
	defer harness.PauseFor(2 * time.Millisecond) // a port is free again only some time later

	conn, err := net.Dial("tcp", b.Addr)
	if err != nil {
		if !errors.Is(err, syscall.EADDRNOTAVAIL) { // which means that we are out of ports ourselves
			s.fault("the %s takes no connection: %v", b.name, err)
		}
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))

	for part := range slices.Chunk(sent, piece) {
		if _, err := conn.Write(part); err != nil {
			break // it has hung up, as it may
		}
	}

	answers := 0
	if listens {
		_ = conn.(*net.TCPConn).CloseWrite()
		answers = s.answers(b, conn, sent)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.answered = s.sent+1, s.answered+answers
}

// answers reads responses to the end of the connection and counts them.
func (s *siege) answers(b *besieged, conn net.Conn, sent []byte) (count int) {
	for in := bufio.NewReader(conn); ; count++ {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return count
		}
		body, err := io.ReadAll(res.Body)
		if res.StatusCode == 500 {
			s.fault("the %s answers 500 to %.2000q: %.300s", b.name, sent, body)
		}
		if err != nil {
			return count
		}
	}
}

// wellFormed are valid requests to the routes that read most of their input. None deletes
// anything: the good client's records must be there at the end.
var wellFormed = sync.OnceValue(func() (all []string) {
	id, track := "01890c3e-7c2b-7000-8000-000000000001", string(harness.BodyOf(800))
	for _, r := range []struct{ line, header, body string }{
		{"POST /rest/track-request", "", track},
		{"POST /rest/track-request", "Content-Encoding: gzip\r\n", track},
		{"POST /rest/track-request", "Content-Encoding: zstd\r\n", track},
		{"POST /rest/track-score", "Expect: 100-continue\r\n", `{"request_id":"` + id + `","score":3}`},
		{"POST /log-request", "", `{"provider":"openai","model":"gpt-4",` +
			`"input":{"type":"chat","messages":[]},"output":{"type":"chat","messages":[]}}`},
		{"POST /rest/prompt-templates", "", `{"prompt_template":{"prompt_name":"fuzzed"},` +
			`"prompt_version":{"prompt_template":{"type":"completion",` +
			`"content":[{"type":"text","text":"{a} @@@b@@@"}]}}}`},
		{"POST /prompt-templates/" + siegeTemplate, "", `{"label":"prod","provider":"openai",` +
			`"input_variables":{"company":"a","name":"b","question":"c"}}`},
		{"GET /prompt-templates?page=1", "", ""},
		{"GET /api/public/v2/requests/suggestions?field=tags", "", ""},
		{"POST /api/public/v2/requests/search", "",
			`{"filter_group":{"logic":"AND","filters":[{"field":"tags","operator":"is","value":"x"}]}}`},
		{"POST /sync/events", "", `{"id":"` + id + `","kind":"request"}` + "\n"},
		{"GET /sync/changes?since=0&wait=0s", "", ""},
		{"GET /", "Accept: text/html\r\nCookie: a=b\r\n", ""},
		{"GET /signin?next=/", "", ""},
	} {
		head := fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: %s\r\n%s", r.line, harness.AdminKey, r.header)
		all = append(all,
			fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(r.body), r.body),
			fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(r.body), r.body))
	}
	return all
})

// splinters are put into requests.
var splinters = []string{
	"\r\n", "\n", "\x00", " ", "\t", "{", "[", `"`, `\u0000`, "\xff", "%00", "%2e%2e/",
	"0\r\n\r\n", "ffffffffffffffff\r\n", strings.Repeat("A", 20_000), strings.Repeat("[", 600),
	"Content-Length: 5\r\n", "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n",
	"Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n",
	"Connection: close\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n", "Expect: 100-continue\r\n",
	"Host: elsewhere\r\n", "Origin: http://elsewhere\r\n", "X-API-KEY: x\r\n", "Trailer: X\r\n",
	"HTTP/1.0", "HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00",
}

// broken returns a request with up to six broken places, or two of them, or random bytes.
func broken(random *rand.Rand) []byte {
	text := []byte(wellFormed()[random.IntN(len(wellFormed()))])
	switch random.IntN(8) {
	case 0:
		text = make([]byte, 1+random.IntN(300))
		for i := range text {
			text[i] = byte(random.Uint32())
		}
	case 1, 2:
		text = append(text, wellFormed()[random.IntN(len(wellFormed()))]...)
	}

	for range random.IntN(7) {
		at := random.IntN(len(text) + 1)
		to := min(len(text), at+random.IntN(200))
		switch random.IntN(6) {
		case 0: // another byte
			if at < len(text) {
				text[at] = byte(random.Uint32())
			}
		case 1: // something more
			text = slices.Insert(text, at, []byte(splinters[random.IntN(len(splinters))])...)
		case 2: // something less
			text = slices.Delete(text, at, to)
		case 3: // a part twice
			text = slices.Insert(text, to, bytes.Clone(text[at:to])...)
		case 4: // no end
			text = text[:at]
		case 5: // another length
			if before, after, ok := bytes.Cut(text, []byte("Content-Length: ")); ok {
				_, after, _ = bytes.Cut(after, []byte("\r\n"))
				text = fmt.Appendf(nil, "%sContent-Length: %d\r\n%s", before, random.IntN(5000)-5, after)
			}
		}
	}

	return text
}
