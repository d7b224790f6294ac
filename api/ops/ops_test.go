package ops

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/metrics"
)

func TestMain(m *testing.M) {
	// A worker pool of fasthttp checks only every ten seconds whether it was stopped.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// serve runs a server on a listener until the test ends.
func serve(t *testing.T, s *edge.Server, ln net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()

	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
}

// listener is an operations listener. A test sets the status of its process, and whether
// it is ready.
type listener struct {
	t       *testing.T
	notYet  atomic.Pointer[error] // why it is not ready
	status  func() any
	metrics *metrics.Metrics
	log     bytes.Buffer // read it only after an answer
	dial    func() (net.Conn, error)
}

// start starts a listener, which runs until the test ends.
func start(t *testing.T) *listener {
	t.Helper()
	l := &listener{
		t:       t,
		metrics: metrics.New("sidecar", "1.2.3"),
		status:  func() any { return map[string]int{"events": 7} },
	}

	ln := fasthttputil.NewInmemoryListener()
	l.dial = ln.Dial
	serve(t, New(Config{
		Metrics: l.metrics,
		Logger:  slog.New(slog.NewTextHandler(&l.log, nil)),
		Status:  func() any { return l.status() },
		Ready: func() error {
			if err := l.notYet.Load(); err != nil {
				return *err
			}
			return nil
		},
	}), ln)

	return l
}

// reply is an answer of the listener.
type reply struct {
	Status int
	Header http.Header
	Text   string
	wire.ErrorBody
}

// call calls a path and returns the answer.
func (l *listener) call(method, path string) reply {
	l.t.Helper()
	return l.raw(method + " " + path + " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
}

// raw sends bytes and reads one answer.
func (l *listener) raw(request string) reply {
	l.t.Helper()
	conn, err := l.dial()
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request) }()

	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		l.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.t.Fatal(err)
	}

	r := reply{Status: res.StatusCode, Header: res.Header, Text: string(text)}
	if res.Header.Get("Content-Type") == "application/json" && method != "HEAD" {
		if err := json.Unmarshal(text, &r.ErrorBody); err != nil {
			l.t.Fatalf("%.40q: %v in %q", request, err, text)
		}
	}

	return r
}

// same fails the test, with a diff, if got differs from want.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestProbes(t *testing.T) {
	l := start(t)
	for _, path := range []string{"/livez", "/readyz", "/startupz"} {
		same(t, path, l.call("GET", path).Text, `{"success":true}`+"\n")
	}

	starting := errors.New("the spool is being checked")
	l.notYet.Store(&starting)
	same(t, "alive while starting", l.call("GET", "/livez").Status, 200)
	for _, path := range []string{"/readyz", "/startupz"} {
		r := l.call("GET", path)
		same(t, path, r.ErrorBody, wire.ErrorBody{
			Error:   wire.CodeUnavailable,
			Message: "Not ready: the spool is being checked.",
			Fields:  []wire.FieldError{},
		})
		same(t, path, []any{r.Status, r.Header.Get("Retry-After")}, []any{503, "1"})
	}

	l.notYet.Store(nil)
	same(t, "ready again", l.call("GET", "/readyz").Status, 200)
	head := l.call("HEAD", "/livez")
	same(t, "by HEAD", []any{head.Status, head.Text}, []any{200, ""})
}

func TestMetricsAreThereFromTheStart(t *testing.T) {
	r := start(t).call("GET", "/metrics")
	same(t, "status", r.Status, 200)
	if problems, err := promlint.New(strings.NewReader(r.Text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint reports %v, error %v", problems, err)
	}

	for _, name := range strings.Fields(`spool_events spool_bytes spool_disk_bytes spool_oldest_seconds` +
		` spool_outage_capacity_seconds
		spool_fsync_seconds_count spool_gaps_total forward_sent_total held_events dead_letters` +
		` template_cache_total{result="hit"}`) {
		if !strings.Contains(r.Text, "\npromptspool_"+name+" ") {
			t.Errorf("promptspool_%s is missing", name)
		}
	}
}

func TestWhatIsNotThereIsToldAsJSON(t *testing.T) {
	l := start(t)
	for _, tt := range []struct {
		method, path string
		status       int
		code         wire.Code
		allow        string
	}{
		{"GET", "/", 404, wire.CodeNotFound, ""},
		{"GET", "/livez/", 404, wire.CodeNotFound, ""},
		{"GET", "/rest/track-request", 404, wire.CodeNotFound, ""},
		{"GET", "/keys", 404, wire.CodeNotFound, ""}, // only the control socket has it
		{"GET", "/debug/pprof/", 404, wire.CodeNotFound, ""},
		{"POST", "/livez", 405, wire.CodeMethod, "GET"},
		{"DELETE", "/metrics", 405, wire.CodeMethod, "GET"},
		{"BREW", "/statusz", 405, wire.CodeMethod, "GET"},
	} {
		r := l.call(tt.method, tt.path)
		same(t, tt.method+" "+tt.path, []any{r.Status, r.Error, r.Success, r.Header.Get("Allow")},
			[]any{tt.status, tt.code, false, tt.allow})

		if r.Message == "" || r.Fields == nil {
			t.Errorf("%s %s: the answer lacks a message or fields: %q", tt.method, tt.path, r.Text)
		}
	}
}

func TestBytesThatAreNoCallAreAnsweredAsJSON(t *testing.T) {
	l := start(t)
	for what, tt := range map[string]struct {
		request string
		status  int
	}{
		"noise": {"\x16\x03\x01\x02\x00 \r\n\r\n", 400},
		"a body too large": {
			"POST /livez HTTP/1.1\r\nHost: here\r\nContent-Length: 70000\r\n\r\n" + strings.Repeat("x", 70000),
			413,
		},
		"a huge header": {"GET /livez HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<16) + "\r\n\r\n", 431},
	} {
		r := l.raw(tt.request)
		same(t, what, []any{r.Status, r.Header.Get("Content-Type"), r.Success},
			[]any{tt.status, "application/json", false})
	}
	same(t, "afterwards", l.call("GET", "/livez").Status, 200)
}

func TestAPanicIsAnsweredCountedAndLogged(t *testing.T) {
	l := start(t)
	l.status = func() any { panic("the status is broken") }

	r := l.call("GET", "/statusz")
	same(t, "answer", []any{r.Status, r.Error}, []any{500, wire.CodeInternal})
	if strings.Contains(r.Text, "broken") {
		t.Errorf("the answer shows what only the log may: %s", r.Text)
	}
	if log := l.log.String(); !strings.Contains(log, "the status is broken") ||
		!strings.Contains(log, "ops_test.go") {
		t.Errorf("the log does not name the panic and its place: %s", log)
	}
	if text := l.call("GET", "/metrics").Text; !strings.Contains(text, "\npromptspool_panics_total 1\n") {
		t.Error("the panic is not counted")
	}
}

func TestAStatusThatCannotBeEncodedIsAnError(t *testing.T) {
	l := start(t)
	l.status = func() any { return func() {} }
	r := l.call("GET", "/statusz")
	same(t, "answer", []any{r.Status, r.Error}, []any{500, wire.CodeInternal})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	ln := fasthttputil.NewInmemoryListener()
	s := New(Config{
		Metrics: metrics.New("server", ""),
		Logger:  slog.New(slog.DiscardHandler),
		Status: func() any {
			close(entered)
			<-leave
			return nil
		},
	})

	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()

	conn, err := ln.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, "GET /statusz HTTP/1.1\r\nHost: here\r\n\r\n") }()
	<-entered

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a handler that hangs, Shutdown returned %v", err)
	}

	close(leave)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestAHeadWhoseEndIsInDoubtIsRefused(t *testing.T) {
	l := start(t)
	for name, sent := range map[string]string{
		"a length and chunks": "GET /livez HTTP/1.1\r\nHost: localhost\r\n" +
			"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"a folded line":    "GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n Content-Length: 5\r\n\r\n",
		"a bare line feed": "GET /livez HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n",
	} {
		conn, err := l.dial()
		if err != nil {
			t.Fatal(err)
		}

		smuggled := "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
		if _, err := io.WriteString(conn, sent+smuggled); err != nil {
			t.Fatal(err)
		}

		// Reading ends because the listener closes the connection.
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") ||
			strings.Count(string(answer), "HTTP/1.1") != 1 {
			t.Errorf("%s: error %v, answered\n%s", name, err, answer)
		}
		_ = conn.Close()
	}
}
