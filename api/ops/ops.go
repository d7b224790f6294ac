// Package ops serves what operators and probes look at, on a listener of its own (/metrics, /livez, /readyz, /startupz,
// /statusz), and what changes or exports something, on a unix socket in the data folder (control.sock, 0600) that only the
// process's own user can reach. The listener only reads, shows no payload and needs no key; keep it off public
// networks all the same.
package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// Config is what the operations listener tells.
type Config struct {
	Metrics *metrics.Metrics
	Logger  *slog.Logger
	// Ready says why the process cannot take calls, or nil. It never depends on another process being reachable.
	Ready func() error
	// Status is shown as JSON by /statusz and by the control socket's GET /status.
	Status func() any
}

// handler answers one route of either listener. What it returns is sent as JSON.
type handler func(ctx *fasthttp.RequestCtx) (any, error)

// Server serves either the operations listener or the control socket.
type Server struct{ s *fasthttp.Server }

// Serve answers until Shutdown; then it returns nil.
func (s *Server) Serve(ln net.Listener) error { return s.s.Serve(ln) }

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
	scrape := fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(c.Metrics.Registry, promhttp.HandlerOpts{}))
	return newServer(c.Logger, map[string]handler{
		"GET /livez":    alive,
		"GET /readyz":   ready,
		"GET /startupz": ready,
		"GET /statusz":  func(*fasthttp.RequestCtx) (any, error) { return c.Status(), nil },
		"GET /metrics":  func(ctx *fasthttp.RequestCtx) (any, error) { scrape(ctx); return nil, nil },
	})
}

func newServer(logger *slog.Logger, routes map[string]handler) *Server {
	handle := func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if p := recover(); p != nil {
				logger.Error("an operations handler panicked", "panic", p)
				writeError(ctx, wire.Errorf(wire.CodeInternal, "Something failed inside promptspool; its log says what."))
			}
		}()
		h, err := find(routes, string(ctx.Method()), string(ctx.Path()))
		if err != nil {
			writeError(ctx, err)
			return
		}
		v, err := h(ctx)
		if err != nil {
			writeError(ctx, err)
		} else if v != nil {
			writeJSON(ctx, 200, v)
		}
	}
	return &Server{&fasthttp.Server{
		Handler:            handle,
		ErrorHandler:       func(ctx *fasthttp.RequestCtx, err error) { writeError(ctx, wire.Errorf(wire.CodeBadJSON, "%v", err)) },
		Name:               "promptspool",
		MaxRequestBodySize: 64 << 10,
		ReadTimeout:        10 * time.Second,
		WriteTimeout:       time.Minute,
		IdleTimeout:        time.Minute,
		CloseOnShutdown:    true,
		Logger:             quiet{},
	}}
}

// find looks a route up; a route that ends in "/" takes the rest of the path.
func find(routes map[string]handler, method, path string) (handler, error) {
	known := false
	for r, h := range routes {
		m, p, _ := strings.Cut(r, " ")
		if path != p && !(strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) && path != p) {
			continue
		}
		if m == method {
			return h, nil
		}
		known = true
	}
	if known {
		return nil, wire.Errorf(wire.CodeMethod, "This path does not take %.20s.", method)
	}
	return nil, wire.Errorf(wire.CodeNotFound, "There is no route %.100s here. The API is on another listener.", path)
}

func writeJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = 500, []byte(`{"success":false,"error":"internal","message":"The answer could not be encoded.","fields":[]}`)
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(append(body, '\n'))
}

func writeError(ctx *fasthttp.RequestCtx, err error) {
	e := wire.AsError(err)
	fields := e.Fields
	if fields == nil {
		fields = []wire.FieldError{}
	}
	if e.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", fmt.Sprint(int(e.RetryAfter.Seconds())))
	}
	writeJSON(ctx, e.Status(), map[string]any{"success": false, "error": e.Code, "message": e.Message, "fields": fields})
}

// quiet drops fasthttp's notes about connections.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
