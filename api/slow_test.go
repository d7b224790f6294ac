package api_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api"
	"promptspool/metrics"
)

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
