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
}

// mischief does something with a batch in place of passing it on.
type mischief func(b *between, w http.ResponseWriter, r *http.Request)

func startBetween(t *testing.T, next string) *between {
	t.Helper()
	b := &between{t: t, next: next}
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
	b.fault, b.met = f, 0
}

func (b *between) timesMet() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.met
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	fault := b.fault
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
	fault(b, w, r)
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

func resetsAfterApplying(b *between, w http.ResponseWriter, r *http.Request) {
	b.pass(r, readAll(r))
	cut(w)
}

// loginPage is an answer in the proxy's own name.
func loginPage(_ *between, w http.ResponseWriter, r *http.Request) {
	readAll(r)
	w.Header().Set("Content-Type", "text/html")
	_, _ = io.WriteString(w, "<html><body>Who are you?</body></html>")
}
