package edge

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"promptspool/metrics"
)

func TestMain(m *testing.M) {
	// fasthttp's worker pool looks only every ten seconds whether it was stopped, and its clock runs
	// for ever.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

const most = 8

// scene is a server of at most eight connections. Calls of /slow are answered when release is
// closed, all others immediately.
type scene struct {
	*testing.T
	c       *Connections
	metrics *metrics.Metrics
	addr    string
	entered chan bool // a call of /slow
	release chan struct{}
}

func stage(t *testing.T, secret *tls.Config) *scene {
	t.Helper()
	m := metrics.New("sidecar", "test")
	s := &scene{
		T:       t,
		c:       NewConnections(most, m),
		metrics: m,
		entered: make(chan bool, 100),
		release: make(chan struct{}),
	}
	server := &fasthttp.Server{
		ReadTimeout:     10 * time.Second,
		IdleTimeout:     10 * time.Second,
		CloseOnShutdown: true,
		NoDefaultDate:   true,
		Logger:          quiet{},
		Handler:         s.handle,
	}
	bounded := NewServer(server, s.c)

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	if secret != nil {
		ln = tls.NewListener(ln, secret)
	}

	done := make(chan error, 1)
	go func() { done <- bounded.Serve(ln) }()
	t.Cleanup(func() {
		select {
		case <-s.release:
		default:
			close(s.release)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.ShutdownWithContext(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) handle(ctx *fasthttp.RequestCtx) {
	Answering(ctx.Conn())
	if string(ctx.Path()) == "/slow" {
		s.entered <- true
		<-s.release
	}
	ctx.SetBodyString("fine")
}

// quiet drops fasthttp's notes about connections.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial opens a connection that ends with the test, and sends a text.
func (s *scene) dial(text string) *client {
	s.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		s.Fatal(err)
	}
	return &client{conn, bufio.NewReader(conn)}
}

type client struct {
	net.Conn
	in *bufio.Reader
}

// call makes a call; it returns the answer's status, 0 if the connection was closed instead.
func (c *client) call(path string) int {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
		return 0
	}
	return c.answer()
}

func (c *client) answer() int {
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// isCut waits for the end of a connection that sent half a call; false if it is still open.
func (c *client) isCut(patience time.Duration) bool {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	_, err := io.Copy(io.Discard, c.in)
	timeout, _ := err.(net.Error)
	return timeout == nil || !timeout.Timeout()
}

const halfHead = "POST / HTTP/1.1\r\nHost: loc"

// value is that of a metric, with a label or none.
func (s *scene) value(name string, label ...string) float64 {
	s.Helper()
	families, err := s.metrics.Registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "promptspool_"+name && (label == nil || m.GetLabel()[0].GetValue() == label[0]) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	s.Fatalf("there is no metric %s", name)
	return 0
}

// arrived waits until so many connections are open.
func (s *scene) arrived(count int) {
	s.Helper()
	s.reaches(func() float64 { return s.value("connections") }, float64(count))
}

// reaches waits until something is as it should be.
func (s *scene) reaches(value func() float64, want float64) {
	s.Helper()
	deadline := time.After(10 * time.Second)
	for value() != want {
		select {
		case <-deadline:
			s.Fatalf("it is %v, want %v", value(), want)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestWhoKeepsUsWaitingLongestMakesRoom(t *testing.T) {
	s := stage(t, nil)
	const halfBody = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab"
	var half []*client
	for i := range most {
		half = append(half, s.dial([]string{halfHead, "", halfBody}[i%3]))
		s.arrived(i + 1)
	}

	for i := range 100 {
		if status := s.dial("").call("/"); status != 200 {
			t.Fatalf("call %d beside those that never end is answered with %d", i, status)
		}
	}

	for i, c := range half {
		if !c.isCut(10 * time.Second) {
			t.Errorf("half a call, number %d, is still open", i)
		}
	}
	if cut := s.value("connections_cut_total", "slow"); cut < most {
		t.Errorf("%v were cut", cut)
	}
}

func TestWhoseCallIsBeingAnsweredIsNeverCut(t *testing.T) {
	s := stage(t, nil)
	var slow []*client
	for range most {
		slow = append(slow, s.dial("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		<-s.entered
	}

	// No connection keeps us waiting, so none is cut: those that come are refused immediately.
	for range 20 {
		c := s.dial("")
		res, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		whole := strings.HasSuffix(string(body), "}\n") && res.ContentLength == int64(len(body))
		if err != nil || res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || !whole {
			t.Fatalf("%d %s, %v", res.StatusCode, body, err)
		}
	}

	close(s.release)
	for _, c := range slow {
		if status := c.answer(); status != 200 {
			t.Errorf("a call that was being answered got %d", status)
		}
	}
	if refused := s.value("connections_cut_total", "refused"); refused != 20 {
		t.Errorf("%v were refused", refused)
	}
	if status := s.dial("").call("/"); status != 200 {
		t.Errorf("when there is space again a call is answered with %d", status)
	}
}

func TestHandshakesThatNeverEndHinderNobody(t *testing.T) {
	own := httptest.NewUnstartedServer(nil)
	own.StartTLS()
	defer own.Close()
	s := stage(t, own.TLS.Clone())
	for range 5 * most {
		s.dial("\x16\x03\x01")
	}

	trusting := &tls.Config{InsecureSkipVerify: true} // who it is does not matter here
	for range 20 {
		conn, err := tls.Dial("tcp", s.addr, trusting)
		if err != nil {
			t.Fatal(err)
		}
		if status := (&client{conn, bufio.NewReader(conn)}).call("/"); status != 200 {
			t.Errorf("beside them a call is answered with %d", status)
		}
		_ = conn.Close()
	}
}
