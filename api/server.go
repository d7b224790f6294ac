package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// Server serves an API on listeners.
type Server struct {
	s, otlp *edge.Server // otlp for what OpenTelemetry exporters send, and nothing else
	api     *API
}

// NewServer makes a Server that bounds everything that a client can use up: headers, time,
// connections, pooled buffers.
func (a *API) NewServer() *Server {
	return &Server{
		api:  a,
		s:    a.newServer(a.Handle),
		otlp: a.newServer(a.handleOTLP),
	}
}

func (a *API) newServer(handler fasthttp.RequestHandler) *edge.Server {
	s := &fasthttp.Server{
		Handler:      handler,
		ErrorHandler: parseError(a.c.Version),
		Name:         "promptspool",
		Logger:       printfLogger{a.c.Logger},

		// Without streaming, fasthttp would read each body whole before a handler can reject it.
		// The largest size is only what is read ahead; the admission of bodies holds the bound.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		MaxRequestBodySize:           int(a.c.BodyBytesMax),

		ReadBufferSize:  edge.HeadBytesMax,
		WriteBufferSize: 8 << 10, // a fetched template goes out in one write, with its head

		ReadTimeout:     headTime,
		HeaderReceived:  bodyTime,
		WriteTimeout:    time.Minute,
		IdleTimeout:     2 * time.Minute,
		NoDefaultDate:   true,
		CloseOnShutdown: true,
	}
	s.ExpectHandler = func(ctx *fasthttp.RequestCtx) int {
		if _, err := admission.Encoding(ctx, a.c.BodyBytesMax); err != nil {
			writeError(ctx, a.c.Logger, err)
			return ctx.Response.StatusCode()
		}
		return fasthttp.StatusContinue
	}

	return edge.NewServer(s, a.conns)
}

// A slow client holds a connection and its buffer. The head of a request must come within
// headTime of the connection's first moment, or of the head's first byte. A body must
// come within bodyTimeMin and what its length takes at bodyRateMin; one whose length is
// not announced may take bodyTimeUnknown. A body larger than a small one must keep
// admission's pace instead.
const (
	headTime        = 15 * time.Second
	bodyTimeMin     = 15 * time.Second
	bodyRateMin     = 256 << 10 // bytes a second
	bodyTimeUnknown = time.Minute
)

// bodyTime returns how long the rest of a request may take, once its head has come.
func bodyTime(head *fasthttp.RequestHeader) fasthttp.RequestConfig {
	length := head.ContentLength()
	if length < 0 {
		return fasthttp.RequestConfig{ReadTimeout: bodyTimeUnknown}
	}
	atRate := time.Duration(min(length, wire.BodyBytesMax)) * time.Second / bodyRateMin

	return fasthttp.RequestConfig{ReadTimeout: bodyTimeMin + atRate}
}

// Serve answers requests on ln until Shutdown, after which it returns nil. It may be called for
// several listeners.
func (s *Server) Serve(ln net.Listener) error {
	return s.s.Serve(ln)
}

// ServeOTLP is Serve for a listener that takes nothing but what OpenTelemetry exporters send.
func (s *Server) ServeOTLP(ln net.Listener) error {
	return s.otlp.Serve(ln)
}

// Quiet returns for how long no request has been under way; 0 while one is. Before the
// first request it counts from the start.
func (s *Server) Quiet() time.Duration { return s.api.busy.quiet() }

// Shutdown closes the listeners and waits for handlers to end, as long as ctx allows. It ends the
// contexts of requests, so that those that wait for something end, too.
func (s *Server) Shutdown(ctx context.Context) error {
	s.api.cancelRoot()

	// Together: none may take requests while another waits for its own.
	ended := make(chan error, 2)
	go func() { ended <- s.otlp.Shutdown(ctx) }()
	go func() { ended <- s.api.grpc.Shutdown(ctx) }()
	err := s.s.Shutdown(ctx)

	return errors.Join(err, <-ended, <-ended)
}

// printfLogger passes fasthttp's own messages, all of them about connections, to slog.
type printfLogger struct{ *slog.Logger }

// Printf logs a message of fasthttp.
func (l printfLogger) Printf(format string, args ...any) {
	l.Debug("http: " + fmt.Sprintf(format, args...))
}

// busy knows whether requests are under way. Safe for concurrent use.
type busy struct {
	calls atomic.Int64
	last  atomic.Int64 // when the last one ended, in nanoseconds since start
	start time.Time
}

func newBusy() *busy { return &busy{start: time.Now()} }

func (b *busy) begin() { b.calls.Add(1) }

func (b *busy) finish(now time.Time) {
	b.last.Store(int64(now.Sub(b.start)))
	b.calls.Add(-1)
}

func (b *busy) quiet() time.Duration {
	if b.calls.Load() > 0 {
		return 0
	}
	return time.Since(b.start) - time.Duration(b.last.Load())
}

// cutBasePath removes Config.BasePath from the path of a request, unless a proxy has already done
// so. Everything after it sees paths as if there were none.
func (a *API) cutBasePath(ctx *fasthttp.RequestCtx) {
	if a.c.BasePath == "" {
		return
	}
	rest, isBelow := bytes.CutPrefix(ctx.RequestURI(), []byte(a.c.BasePath))
	if !isBelow {
		return
	}

	switch {
	case len(rest) == 0 || rest[0] == '?':
		ctx.Request.SetRequestURI("/" + string(rest))
	case rest[0] == '/':
		// A path that begins with two slashes would name a host.
		ctx.Request.SetRequestURI("/" + string(bytes.TrimLeft(rest, "/")))
	}
}
