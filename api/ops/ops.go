// Package ops serves operators and probes.
//
// The pages that they read (/metrics, /livez, /readyz, /startupz, /statusz) are on a
// separate listener. It shows no payload and needs no key; keep it off public networks
// nevertheless.
//
// Calls that change or export something are on a unix socket in the data folder
// (control.sock, 0600), which only the process's own user can reach.
package ops

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"promptspool/api/edge"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// Config is what the operations listener shows. Its functions may be called concurrently.
type Config struct {
	Metrics *metrics.Metrics
	Logger  *slog.Logger

	// Ready returns why the process cannot take requests, or nil. It must not depend on
	// another process being reachable, except a server's database: requests should go to a
	// server that reaches it.
	Ready func() error

	// Started returns what the start still waits for, or nil. Such waiting is bounded in
	// time. Without it, the process has started when it is ready.
	Started func() error

	// Status is shown as JSON by /statusz and by the control socket's GET /status.
	Status func() any

	// ConnectionsMax bounds the open connections; 0 means ConnectionsMax.
	ConnectionsMax int
}

// ConnectionsMax is the default bound, enough for probes, scrapers and people.
const ConnectionsMax = 128

// New makes the server of the operations listener.
func New(c Config) *edge.Server {
	scraped := promhttp.HandlerFor(c.Metrics.Registry, promhttp.HandlerOpts{})
	scrape := fasthttpadaptor.NewFastHTTPHandler(scraped)

	conns := edge.NewConnections(cmp.Or(c.ConnectionsMax, ConnectionsMax), c.Metrics)

	return edge.NewServer(newServer(c.Logger, c.Metrics.Panics, []route{
		{"GET", "/livez", alive},
		{"GET", "/readyz", c.ready},
		{"GET", "/startupz", c.started},
		{"GET", "/statusz", c.status},
		{"GET", "/metrics", func(ctx *fasthttp.RequestCtx) (any, error) {
			scrape(ctx)
			return nil, nil
		}},
	}), conns)
}

func alive(*fasthttp.RequestCtx) (any, error) { return map[string]bool{"success": true}, nil }

func (c Config) ready(ctx *fasthttp.RequestCtx) (any, error) {
	if c.Ready == nil {
		return alive(ctx)
	}
	if err := c.Ready(); err != nil {
		return nil, wire.Unavailable(time.Second, "Not ready: %v.", err)
	}
	return alive(ctx)
}

func (c Config) started(ctx *fasthttp.RequestCtx) (any, error) {
	if c.Started != nil {
		if err := c.Started(); err != nil {
			return nil, wire.Unavailable(time.Second, "Not started: %v.", err)
		}
	}
	return c.ready(ctx)
}

func (c Config) status(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil }

// newServer serves a table of routes. It counts panics in panics, unless that is nil.
func newServer(logger *slog.Logger, panics prometheus.Counter, routes []route) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:            (&mux{logger, panics, routes}).handle,
		ErrorHandler:       edge.WriteParseError,
		ReadBufferSize:     edge.HeadBytesMax,
		Name:               "promptspool",
		MaxRequestBodySize: bodyBytesMax,
		ReadTimeout:        10 * time.Second,
		WriteTimeout:       time.Minute,
		IdleTimeout:        time.Minute,
		NoDefaultDate:      true,
		CloseOnShutdown:    true,
		Logger:             noLog{},
	}
}

// noLog drops fasthttp's messages about single connections.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

// bodyBytesMax bounds the body of a request.
const bodyBytesMax = 64 << 10

// panicMessage is what a caller reads about a panic.
const panicMessage = "Something failed inside promptspool. Its log has the details."

// route is one line of a listener's table. A path that ends in "/" stands for every
// longer one.
type route struct {
	method, path string
	handle       handler
}

// handler answers a request. Its answer is sent as JSON; if it returns neither an answer nor
// an error, it has written the response itself.
type handler func(ctx *fasthttp.RequestCtx) (any, error)

// mux finds the route of a request. Every error is a JSON object.
type mux struct {
	logger *slog.Logger
	panics prometheus.Counter // may be nil
	routes []route
}

// handle answers a request.
func (m *mux) handle(ctx *fasthttp.RequestCtx) {
	// fasthttp does not recover from panics: one in a handler would end the process.
	defer func() {
		if p := recover(); p != nil {
			m.logger.Error("an operations handler panicked", "panic", p, "stack", string(debug.Stack()))
			if m.panics != nil {
				m.panics.Inc()
			}
			edge.WriteError(ctx, wire.Errorf(wire.CodeInternal, panicMessage))
		}
	}()
	edge.Answering(ctx.Conn())

	err := edge.CheckHead(ctx)
	var answer any
	if err == nil {
		answer, err = m.call(ctx)
	}

	if err != nil {
		if e := wire.AsError(err); e.Status() == 500 {
			m.logger.Error("an operations request failed", "path", string(ctx.Path()), "error", e)
		}
		edge.WriteError(ctx, err)
	} else if answer != nil {
		edge.WriteJSON(ctx, 200, answer)
	}
}

// call passes a request to the first route that matches.
func (m *mux) call(ctx *fasthttp.RequestCtx) (any, error) {
	method, path := string(ctx.Method()), string(ctx.Path())

	var allowed []string
	for _, r := range m.routes {
		rest, matches := strings.CutPrefix(path, r.path)
		if !matches || strings.HasSuffix(r.path, "/") == (rest == "") {
			continue
		}
		if method == r.method || method == "HEAD" && r.method == "GET" {
			return r.handle(ctx)
		}
		allowed = append(allowed, r.method)
	}
	if allowed == nil {
		return nil, wire.Errorf(wire.CodeNotFound,
			"There is no route %.100s here. The API is on another listener.", path)
	}

	allow := strings.Join(allowed, ", ")
	ctx.Response.Header.Set("Allow", allow)

	return nil, wire.Errorf(wire.CodeMethod, "This path takes %s, not %.20s.", allow, method)
}

// profileRoutes give Go's profiles of the process's time and memory to its own user. A
// profile of time runs for ?seconds=, by default 30.
func profileRoutes() []route {
	return []route{
		{"GET", "/debug/pprof/profile", adapted(pprof.Profile)},
		{"GET", "/debug/pprof/trace", adapted(pprof.Trace)},
		{"GET", "/debug/pprof/", adapted(pprof.Index)}, // heap, goroutine, allocs, mutex, block
	}
}

// adapted turns a handler of net/http into one of ours.
func adapted(f http.HandlerFunc) handler {
	handle := fasthttpadaptor.NewFastHTTPHandlerFunc(f)
	return func(ctx *fasthttp.RequestCtx) (any, error) {
		handle(ctx)
		return nil, nil
	}
}
