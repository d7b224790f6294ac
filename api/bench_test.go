//go:build bench

package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"promptspool/api"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// BenchmarkCall measures what the API itself takes of a call: what is behind it answers immediately. The
// caller is a connection that has the next request ready, and throws answers away.
func BenchmarkCall(b *testing.B) {
	chat := fmt.Sprintf(`{"function_name":"openai.ChatCompletion.create","provider_type":"openai",`+
		`"kwargs":{"model":"gpt-4","messages":[{"role":"user","content":"%s"}]},`+
		`"request_response":{"id":"x","choices":[]},`+
		`"request_start_time":1687000000.25,"request_end_time":1687000001.5}`, strings.Repeat("words ", 640))
	for name, call := range map[string]struct{ path, body string }{
		"fetch": {"/prompt-templates/support", `{"label":"prod","provider":"openai",` +
			`"input_variables":{"company":"a company","name":"Ann","question":"How are you?"}}`},
		"write": {"/rest/track-request", chat},
	} {
		b.Run(name, func(b *testing.B) {
			server := api.New(api.Config{
				Name: "here", Version: "test", Recorder: &recorder{}, Authenticator: keys{}, Templates: instant{},
				Metrics: metrics.New("sidecar", "test"), Logger: discard,
			}).NewServer()
			request := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost:8787\r\nX-API-KEY: app\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", call.path, len(call.body), call.body)

			caller := &busyCaller{Conn: loopback(b), request: request, left: b.N, hungUp: make(chan struct{})}
			ln := oneCaller{Listener: fasthttputil.NewInmemoryListener(), caller: make(chan net.Conn, 1)}
			ln.caller <- caller
			go func() { _ = server.Serve(ln) }()

			b.ReportAllocs()
			<-caller.hungUp
			b.StopTimer()
			ln.Close()
		})
	}
}

// instant renders nothing.
type instant struct{ api.Templates }

func (instant) Fetch(context.Context, wire.Identity, string, wire.TemplateFetch) (wire.RenderedTemplate, error) {
	return wire.RenderedTemplate{Success: true, LLMKwargs: []byte(`{"model":"gpt-4"}`)}, nil
}

// busyCaller sends the same request again and again. Deadlines are those of a real connection.
type busyCaller struct {
	net.Conn
	request string
	sent    int // of the request at hand
	left    int
	hungUp  chan struct{}
}

func (c *busyCaller) Read(p []byte) (int, error) {
	if c.sent == len(c.request) {
		c.sent = 0
		c.left--
	}
	if c.left == 0 {
		close(c.hungUp)
		return 0, io.EOF
	}

	n := copy(p, c.request[c.sent:])
	c.sent += n
	return n, nil
}

func (c *busyCaller) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("HTTP/1.1 200 ")) {
		panic(string(p))
	}

	return len(p), nil
}

// oneCaller is a listener with one connection.
type oneCaller struct {
	net.Listener
	caller chan net.Conn
}

func (l oneCaller) Accept() (net.Conn, error) {
	select {
	case conn := <-l.caller:
		return conn, nil
	default:
		return l.Listener.Accept()
	}
}

// loopback is one end of a connection.
func loopback(b *testing.B) net.Conn {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })

	return conn
}
