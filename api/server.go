package api

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Server serves an API on listeners.
type Server struct {
	s   *fasthttp.Server
	api *API
}

// NewServer sets bounds on everything a client can stretch: headers, time, connections, buffers kept. Bodies are streamed,
// for fasthttp would otherwise read each whole before a handler could refuse it.
func (a *API) NewServer() *Server {
	s := &fasthttp.Server{
		Handler:                      a.Handle,
		ErrorHandler:                 parseError(a.c.Version),
		Name:                         "promptspool",
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
		MaxRequestBodySize:           int(a.c.BodyBytesMax), // only what is read ahead; readBody holds the bound
		ReadBufferSize:               16 << 10,
		WriteBufferSize:              8 << 10, // a fetched template, with its head, goes out in one write
		ReadTimeout:                  headTime,
		HeaderReceived:               bodyTime,
		WriteTimeout:                 time.Minute,
		IdleTimeout:                  2 * time.Minute,
		NoDefaultDate:                true,
		CloseOnShutdown:              true,
		Logger:                       printf{a.c.Logger},
	}
	a.conns.Bound(s)
	return &Server{api: a, s: s}
}

// A client that is slow holds a connection and its buffer. The head of a call must come within headTime of the connection's first
// moment, or of the head's first byte; a body within bodyTimeMin and what its length takes at bodyRateMin. One whose length is not
// told may take bodyTimeUntold. What readBody reads must keep pace instead, once it is more than a small body; see counter.
const (
	headTime       = 15 * time.Second
	bodyTimeMin    = 15 * time.Second
	bodyRateMin    = 256 << 10 // bytes a second
	bodyTimeUntold = time.Minute
)

// bodyTime is how long the rest of a call may take, once its head is there.
func bodyTime(head *fasthttp.RequestHeader) fasthttp.RequestConfig {
	length := head.ContentLength()
	if length < 0 {
		return fasthttp.RequestConfig{ReadTimeout: bodyTimeUntold}
	}
	return fasthttp.RequestConfig{ReadTimeout: bodyTimeMin + time.Duration(min(length, wire.BodyBytesMax))*time.Second/bodyRateMin}
}

// Serve answers calls on ln until Shutdown; then it returns nil. It may be called for several listeners.
func (s *Server) Serve(ln net.Listener) error {
	return s.s.Serve(s.api.conns.Listener(ln))
}

// Quiet is for how long no call has been under way; 0 while one is. Before the first call it counts from the start.
func (s *Server) Quiet() time.Duration { return s.api.busy.quiet() }

// Shutdown closes the listeners, ends the contexts of calls that wait for something, and waits for handlers to end, as long as
// ctx lets it.
func (s *Server) Shutdown(ctx context.Context) error {
	s.api.end()
	return s.s.ShutdownWithContext(ctx)
}

// printf hands fasthttp's own messages, all of them about connections, to slog.
type printf struct{ *slog.Logger }

func (p printf) Printf(format string, args ...any) {
	p.Debug("http: " + fmt.Sprintf(format, args...))
}

// busy knows whether calls are under way. Safe for concurrent use.
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
