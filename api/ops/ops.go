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
