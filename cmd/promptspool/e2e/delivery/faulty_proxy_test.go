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

// asksToComeBack is a 503 in the server's name.
func asksToComeBack(_ *between, w http.ResponseWriter, r *http.Request, _ <-chan struct{}) {
	readAll(r)
	w.Header().Set("Promptspool-Version", "test")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, `{"success":false,"error":"unavailable","message":"Because of the test.","fields":[]}`)
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

// takesSmallOnes refuses batches of more than 1,500 bytes, as a proxy does.
func takesSmallOnes(b *between, w http.ResponseWriter, r *http.Request, over <-chan struct{}) {
	body := readAll(r)
	if len(body) > 1500 {
		html(http.StatusRequestEntityTooLarge)(b, w, r, over)
		return
	}
	answer(w, b.pass(r, body))
}
