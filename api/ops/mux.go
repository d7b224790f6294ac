package ops

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

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
