//go:build linux

package delivery

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// between is a proxy between sidecar and server: it passes calls on, or does something
// else with batches.
type between struct {
	t    *testing.T
	addr string // its own
	next string // the server's

	mu    sync.Mutex
	fault mischief // nil: none
	met   int      // how often the fault happened
	over  chan struct{}
}

// mischief does something with a batch in place of passing it on. over is closed when the
// fault ends.
type mischief func(b *between, w http.ResponseWriter, r *http.Request, over <-chan struct{})

func startBetween(t *testing.T, next string) *between {
	t.Helper()
	b := &between{t: t, next: next, over: make(chan struct{})}
	web := httptest.NewServer(b)
	b.addr = web.Listener.Addr().String()
	t.Cleanup(func() {
		b.set(nil)
		web.CloseClientConnections()
		web.Close()
	})
	return b
}

// set begins a fault, or ends it.
func (b *between) set(f mischief) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.over)
	b.fault, b.met, b.over = f, 0, make(chan struct{})
}

func (b *between) timesMet() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.met
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	fault, over := b.fault, b.over
	if r.URL.Path != "/sync/events" {
		fault = nil
	}
	if fault != nil {
		b.met++
	}
	b.mu.Unlock()

	if fault == nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer(w, b.pass(r, body))
		return
	}
	fault(b, w, r, over)
}

// passed is the server's answer.
type passed struct {
	status int
	header http.Header
	body   []byte
}

// pass forwards a call to the server.
func (b *between) pass(r *http.Request, body []byte) passed {
	req, err := http.NewRequest(r.Method, "http://"+b.next+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Header = r.Header.Clone()
	res, err := http.DefaultTransport.RoundTrip(req.WithContext(r.Context()))
	if err != nil {
		panic(http.ErrAbortHandler) // the sidecar sees a broken connection
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return passed{res.StatusCode, res.Header, text}
}

func answer(w http.ResponseWriter, p passed) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(p.body)))
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body)
}

func readAll(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// html is an answer in the proxy's own name.
func html(status int) mischief {
	return func(_ *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		readAll(r)
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html><body>Who are you? "+http.StatusText(status)+"</body></html>")
	}
}

// ours is an answer in the server's name, with a Retry-After if that is not empty.
func ours(status int, code, retryAfter string) mischief {
	return func(_ *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		readAll(r)
		w.Header().Set("Promptspool-Version", "test")
		if retryAfter == "date" {
			retryAfter = time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"success":false,"error":%q,"message":"No, because of the test.","fields":[]}`, code)
	}
}

// failsFor answers batches of one key as a server whose database cannot serve its account, and
// passes on the others.
func failsFor(key string) mischief {
	return func(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
		body := readAll(r)
		if r.Header.Get("X-API-KEY") != key {
			answer(w, b.pass(r, body))
			return
		}

		w.Header().Set("Promptspool-Version", "test")
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(503)
		_, _ = io.WriteString(w, `{"success":false,"error":"unavailable","message":"A worker is away.",`+
			`"fields":[],"affects":"account"}`)
	}
}

// cut resets the connection, so that the other side does not take it for an orderly end.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func hangs(_ *between, w http.ResponseWriter, r *http.Request, over <-chan struct{}) {
	readAll(r)
	select {
	case <-over:
	case <-r.Context().Done():
	}
	cut(w)
}

func resetsAfterApplying(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	b.pass(r, readAll(r))
	cut(w)
}

func liesAboutTheCount(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	p := b.pass(r, readAll(r))
	p.body = []byte(`{"success":true,"accepted":100000,"duplicate":0,"refused":[]}`)
	answer(w, p)
}

func cutsTheAnswerShort(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	p := b.pass(r, readAll(r))
	w.Header().Set("Promptspool-Version", "test")
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write(p.body[:len(p.body)/2])
	panic(http.ErrAbortHandler)
}

func cutsTheBatchShort(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	body := readAll(r)
	answer(w, b.pass(r, body[:len(body)/2]))
}

// takesSmallOnes refuses batches larger than most bytes, as a proxy would, or as the
// server itself.
func takesSmallOnes(most int, refusal mischief) mischief {
	return func(b *between, w http.ResponseWriter, r *http.Request, over <-chan struct{}) {
		body := readAll(r)
		if len(body) > most {
			r.Body = http.NoBody
			refusal(b, w, r, over)
			return
		}
		answer(w, b.pass(r, body))
	}
}

// isSlow reads a batch and gives the answer in small pieces.
func isSlow(b *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	var body []byte
	piece := make([]byte, 512)
	for {
		n, err := r.Body.Read(piece)
		body = append(body, piece[:n]...)
		if err != nil {
			break
		}
		harness.PauseFor(time.Millisecond)
	}

	p := b.pass(r, body)
	w.Header().Set("Promptspool-Version", "test")
	for _, c := range p.body {
		_, _ = w.Write([]byte{c})
		_ = http.NewResponseController(w).Flush()
	}
}
