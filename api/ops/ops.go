// Package ops serves what operators and probes look at, on a listener of its own (/metrics, /livez, /readyz, /startupz,
// /statusz), and what changes or exports something, on a unix socket in the data folder (control.sock, 0600) that only the
// process's own user can reach. The listener only reads, shows no payload and needs no key; keep it off public
// networks all the same.
package ops

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Config is what the operations listener tells. All of it is required; the functions may be called concurrently.
type Config struct {
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	// Ready says why the process cannot take calls, or nil. It never depends on another process being reachable, but for a server's
	// database: calls had better go to a server that reaches it.
	Ready func() error
	// Started says what a start still waits for, or nil; nil: only for Ready. What it waits for is bounded in time.
	Started func() error
	// Status is shown as JSON by /statusz and by the control socket's GET /status.
	Status func() any
	// Describe writes the same for people, as text; nil: nobody asks for that. /statusz gives it to browsers.
	Describe func(io.Writer)
	// ConnectionsMax bounds how many connections are open at once; 0 means 128.
	ConnectionsMax int
}

// Server serves either the operations listener or the control socket.
type Server struct {
	s     *fasthttp.Server
	conns *edge.Connections // nil: any number, of our own user
}

// Serve answers until Shutdown; then it returns nil.
func (s *Server) Serve(ln net.Listener) error {
	if s.conns != nil {
		ln = s.conns.Listener(ln)
	}
	return s.s.Serve(ln)
}

// ConnectionsMax are enough for probes, whoever scrapes, and people.
const ConnectionsMax = 128

// Shutdown closes the listener and waits for handlers to end, as long as ctx lets it.
func (s *Server) Shutdown(ctx context.Context) error { return s.s.ShutdownWithContext(ctx) }

// New makes the server of the operations listener.
func New(c Config) *Server {
	alive := func(*fasthttp.RequestCtx) (any, error) { return map[string]bool{"success": true}, nil }
	ready := func(ctx *fasthttp.RequestCtx) (any, error) {
		if err := c.Ready(); err != nil {
			return nil, wire.Unavailable(time.Second, "Not ready: %v.", err)
		}
		return alive(ctx)
	}
	started := func(ctx *fasthttp.RequestCtx) (any, error) {
		if c.Started != nil {
			if err := c.Started(); err != nil {
				return nil, wire.Unavailable(time.Second, "Not started: %v.", err)
			}
		}
		return ready(ctx)
	}
	scrape := fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(c.Metrics.Registry, promhttp.HandlerOpts{}))
	server := newServer(c.Logger, c.Metrics.Panics, []route{
		{"GET", "/livez", alive},
		{"GET", "/readyz", ready},
		{"GET", "/startupz", started},
		{"GET", "/statusz", func(ctx *fasthttp.RequestCtx) (any, error) {
			accept := ctx.Request.Header.Peek("Accept")
			if c.Describe == nil || !bytes.Contains(accept, []byte("text/html")) && !bytes.Contains(accept, []byte("text/plain")) {
				return c.Status(), nil
			}
			ctx.SetContentType("text/plain; charset=utf-8")
			c.Describe(ctx)
			return nil, nil
		}},
		{"GET", "/metrics", func(ctx *fasthttp.RequestCtx) (any, error) { scrape(ctx); return nil, nil }},
	})
	server.conns = edge.NewConnections(cmp.Or(c.ConnectionsMax, ConnectionsMax), c.Metrics)
	server.conns.Bound(server.s)
	return server
}

// newServer serves a table of routes. Panics are counted in panics, if that is not nil.
func newServer(logger *slog.Logger, panics prometheus.Counter, routes []route) *Server {
	s := &Server{}
	s.s = &fasthttp.Server{
		Handler:            (&mux{logger, panics, routes}).handle,
		ErrorHandler:       func(ctx *fasthttp.RequestCtx, err error) { edge.WriteError(ctx, parseError(err)) },
		Name:               "promptspool",
		MaxRequestBodySize: bodyBytesMax,
		ReadTimeout:        10 * time.Second,
		WriteTimeout:       time.Minute,
		IdleTimeout:        time.Minute,
		NoDefaultDate:      true,
		CloseOnShutdown:    true,
		Logger:             quiet{},
	}
	return s
}

// quiet drops fasthttp's notes about connections.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
