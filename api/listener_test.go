package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// exchange sends bytes on a connection of its own. It returns the statuses of all answers, and
// whether the server hung up.
func exchange(t testing.TB, addr, sent string) (statuses []int, hungUp bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))

	if _, err := io.WriteString(conn, sent); err != nil {
		return nil, true
	}
	_ = conn.(*net.TCPConn).CloseWrite()

	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			isReset := strings.Contains(err.Error(), "reset")
			return statuses, err == io.EOF || err == io.ErrUnexpectedEOF || isReset
		}

		statuses = append(statuses, res.StatusCode)
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return statuses, true
		}
		if res.StatusCode >= 400 && !json.Valid(body) {
			t.Errorf("%.200q is answered with %d %q", sent, res.StatusCode, body)
		}
	}
}

// A proxy between an app and us may place the end of a request elsewhere than we do. What it takes
// for a body must never be answered as a request: here that is /smuggled, which would be 404.
func TestNoRequestIsSmuggledInAnother(t *testing.T) {
	_, addr := startTCP(t, func(c *api.Config) { c.GuardBrowsers = true })
	const (
		head     = "POST /rest/track-request HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: app\r\n"
		chunks   = "Transfer-Encoding: chunked\r\n\r\n"
		folded   = "Transfer-Encoding:\r\n chunked\r\n"
		oldHead  = "POST /rest/track-request HTTP/1.0\r\nHost: localhost\r\nX-API-KEY: app\r\n"
		hostless = "POST /rest/track-request HTTP/1.1\r\nX-API-KEY: app\r\n"
		smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	)
	beyond := fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 5+len(smuggled))
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)

	for name, sent := range map[string]string{
		"a length and chunks":              head + "Content-Length: 5\r\n" + chunks + "0\r\n\r\n" + smuggled,
		"chunks and a length":              head + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunk,
		"a length beyond the last chunk":   head + beyond + smuggled,
		"two lengths that differ":          head + "Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}" + smuggled,
		"the length twice":                 head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}" + smuggled,
		"a list of lengths":                head + "Content-Length: 2, 60\r\n\r\n{}" + smuggled,
		"a length with a sign":             head + "Content-Length: +2\r\n\r\n{}" + smuggled,
		"a length below nothing":           head + "Content-Length: -2\r\n\r\n{}" + smuggled,
		"a length in hexadecimal":          head + "Content-Length: 0x2\r\n\r\n{}" + smuggled,
		"a length that overflows":          head + "Content-Length: 18446744073709551618\r\n\r\n{}" + smuggled,
		"a blank before the colon":         head + "Content-Length : 60\r\n\r\n" + smuggled,
		"a coding that is none":            head + "Transfer-Encoding: identity\r\n\r\n" + smuggled,
		"an unknown coding":                head + "Transfer-Encoding: xchunked\r\n\r\n" + chunk,
		"chunked, and another":             head + "Transfer-Encoding: chunked, identity\r\n\r\n" + chunk,
		"chunked twice":                    head + "Transfer-Encoding: chunked\r\n" + chunks + "0\r\n\r\n" + smuggled,
		"a folded coding":                  head + folded + "Content-Length: 2\r\n\r\n{}" + smuggled,
		"a folded header":                  head + "X-A: b\r\n Content-Length: 60\r\n\r\n" + smuggled,
		"a bare line feed in the head":     head + "X-A: b\nContent-Length: 2\r\n\r\n{}" + smuggled,
		"a bare line feed in chunks":       head + chunks + "2\n{}\n0\n\n" + smuggled,
		"a bare carriage return":           head + "X-A: b\rContent-Length: 60\r\n\r\n" + smuggled,
		"a chunk's extension with a break": head + chunks + "2;a=\n{}\r\n0\r\n\r\n" + smuggled,
		"a chunk longer than it says":      head + chunks + "1\r\n{}\r\n0\r\n\r\n" + smuggled,
		"a chunk's size that overflows":    head + chunks + "10000000000000002\r\n{}\r\n0\r\n\r\n" + smuggled,
		"a chunk's size with a sign":       head + chunks + "+2\r\n{}\r\n0\r\n\r\n" + smuggled,
		"chunks in HTTP/1.0":               oldHead + chunks + "0\r\n\r\n" + smuggled,
		"a zero byte in a header":          head + "Content-Length: 2\x00\r\n\r\n{}" + smuggled,
		"two hosts":                        head + "Host: elsewhere\r\nContent-Length: 2\r\n\r\n{}" + smuggled,
		"no host":                          hostless + "Content-Length: 2\r\n\r\n{}" + smuggled,
		"a huge header":                    head + "X-A: " + strings.Repeat("x", 20<<10) + "\r\n\r\n" + smuggled,
		"something else than HTTP":         "hello\r\n\r\n" + smuggled,
	} {
		statuses, hungUp := exchange(t, addr, sent)
		if slices.Contains(statuses, 404) || len(statuses) > 1 || !hungUp {
			t.Errorf("%s: answered with %v, hung up %v", name, statuses, hungUp)
		}
	}

	// As a control, exchange sees a second request where there is one. Chunks with a valid
	// extension are accepted.
	for name, sent := range map[string]string{
		"one behind the other": head + "Content-Length: 2\r\n\r\n{}" + smuggled,
		"an extension":         head + chunks + "2;a=b\r\n{}\r\n0\r\n\r\n" + smuggled,
	} {
		if statuses, _ := exchange(t, addr, sent); !slices.Equal(statuses, []int{422, 404}) {
			t.Errorf("%s: answered with %v", name, statuses)
		}
	}
}

// A caller that asks whether to send a body that is too large must not send it first.
func TestABodyThatIsTooLargeIsNotAskedFor(t *testing.T) {
	_, addr := startTCP(t, nil)
	for length, want := range map[int]string{
		wire.BodyBytesMax + 1: "HTTP/1.1 413 ", 2: "HTTP/1.1 100 ",
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(conn, "POST /track-request HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: app\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", length)
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		answer := make([]byte, 4096)
		n, err := conn.Read(answer)
		if err != nil || !strings.HasPrefix(string(answer[:n]), want) ||
			length > 2 && !strings.Contains(string(answer[:n]), `{"success":false,"error":"too_large"`) {
			t.Errorf("%d bytes: %q, %v", length, answer[:n], err)
		}
		_ = conn.Close()
	}
}

func TestAHeadHasNoBody(t *testing.T) {
	_, addr := startTCP(t, nil)
	for path, want := range map[string]int{"/prompt-templates/greet": 501, "/track-request": 405} {
		res, err := http.Head("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || len(body) > 0 || res.StatusCode != want {
			t.Errorf("%s: %d %q %v", path, res.StatusCode, body, err)
		}
		_ = res.Body.Close()
	}
}

// FuzzListener checks that any bytes on a connection end with an answer or a hang-up, without a
// panic, and that the next connection is served.
func FuzzListener(f *testing.F) {
	for _, seed := range []string{
		"",
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /rest/track-score HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: app\r\nContent-Length: 2\r\n\r\n{}",
		"POST /sync/events HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Encoding: zstd\r\n\r\n" +
			"2;a=b\r\n{}\r\n0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x01\x04\x00\x00\x00\x01",
		"\x16\x03\x01\x02\x00\x01",
		"GET http://a@b:c/%zz?%=;& HTTP/1.1\r\nHost:\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	m := metrics.New("sidecar", "fuzz")
	server := api.New(api.Config{
		Name:          "here",
		Version:       "fuzz",
		Recorder:      &recorder{},
		Authenticator: keys{},
		GuardBrowsers: true,
		Metrics:       m,
		Logger:        discard,
	}).NewServer()
	go func() { _ = server.Serve(ln) }()
	f.Cleanup(func() { _ = server.Shutdown(context.Background()) })

	f.Fuzz(func(t *testing.T, sent []byte) {
		if _, hungUp := exchange(t, ln.Addr().String(), string(sent)); !hungUp &&
			!bytes.Contains(sent, []byte("PRI * HTTP/2.0")) { // which is answered with frames
			t.Errorf("%q: no end, or an answer that is not HTTP", sent)
		}
		statuses, _ := exchange(t, ln.Addr().String(), "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if !slices.Equal(statuses, []int{404}) {
			t.Errorf("after %q others are answered with %v", sent, statuses)
		}

		families, err := m.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "promptspool_panics_total" && f.GetMetric()[0].GetCounter().GetValue() > 0 {
				t.Errorf("%q: a panic", sent)
			}
		}
	})
}

func TestAListenerForExportersServesNothingElse(t *testing.T) {
	keep := &recorder{}
	server := api.New(api.Config{
		Name:          "here",
		ClockID:       clockID,
		Version:       "test",
		Recorder:      keep,
		Authenticator: keys{},
		Pages:         onePage{},
		Metrics:       metrics.New("sidecar", "test"),
		Logger:        discard,
	}).NewServer()
	ln := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	go func() { done <- server.ServeOTLP(ln) }()

	dial := func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	for call, want := range map[string]int{
		"POST /v1/traces": 200, "POST /": 200, "POST /v1/logs": 200, "POST /otel/v1/metrics": 200,
		"GET /v1/traces": 405, "POST /rest/track-request": 404, "POST /sync/events": 404, "GET /sync/key": 404,
		"GET /": 404, "GET /docs": 404, "POST /nothing": 404,
	} {
		method, path, _ := strings.Cut(call, " ")
		req, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(oneSpan))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-KEY", "app")
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/html")

		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if kind := res.Header.Get("Content-Type"); res.StatusCode != want || kind != "application/json" {
			t.Errorf("%s: %d %s, want %d", call, res.StatusCode, kind, want)
		}
	}
	if len(keep.events) != 4 {
		t.Errorf("%d spans were recorded, want 4, whatever the path", len(keep.events))
	}

	// It ends with the other listeners of the server.
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A slow caller is cut even when nobody needs its place: after 15 s, with an answer.
func TestASlowCallIsCutInTime(t *testing.T) {
	const head = "POST /rest/track-request HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: app\r\n"
	for name, text := range map[string]string{
		"nothing":                   "",
		"half a head":               head[:60],
		"a long head without end":   head + "X-Long: " + strings.Repeat("x", 15<<10),
		"a body that does not come": head + "Content-Length: 1000\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, conn := net.Pipe()
				ln := &oneConn{conns: make(chan net.Conn, 1)}
				ln.conns <- conn
				server := api.New(api.Config{
					Name:          "here",
					ClockID:       clockID,
					Version:       "test",
					Recorder:      &recorder{},
					Authenticator: keys{},
					Metrics:       metrics.New("sidecar", "test"),
					Logger:        slog.New(slog.DiscardHandler),
				}).NewServer()
				ended := make(chan error)
				go func() { ended <- server.Serve(ln) }()

				asked := time.Now()
				go func() { _, _ = io.WriteString(client, text) }()

				in := bufio.NewReader(client)
				res, err := http.ReadResponse(in, nil)
				// With Close, a client does not take it for the answer to another call.
				if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
					t.Fatalf("it is answered %+v, %v", res, err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				if _, err := io.Copy(io.Discard, in); err != nil {
					t.Errorf("it is not cut: %v", err)
				}
				if took := time.Since(asked); took < 14*time.Second || took > 16*time.Second {
					t.Errorf("it is cut after %v", took)
				}

				if err := server.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				<-time.After(time.Minute) // for fasthttp's own housekeeping to end
			})
		})
	}
}

// oneConn is a listener with one connection, of which time can be a test's own.
type oneConn struct{ conns chan net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	conn, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *oneConn) Close() error {
	close(l.conns)
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }
