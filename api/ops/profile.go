package ops

import (
	"net/http"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

// profileRoutes give Go's profiles of the process to its own user: what it does with its time and its memory. A profile of time runs for
// ?seconds=, 30 if it is not given.
func profileRoutes() []route {
	return []route{
		{"GET", "/debug/pprof/profile", adapted(pprof.Profile)},
		{"GET", "/debug/pprof/trace", adapted(pprof.Trace)},
		{"GET", "/debug/pprof/", adapted(pprof.Index)}, // heap, goroutine, allocs, mutex, block
	}
}

// adapted makes a handler of one of net/http's.
func adapted(f http.HandlerFunc) handler {
	handle := fasthttpadaptor.NewFastHTTPHandlerFunc(f)
	return func(ctx *fasthttp.RequestCtx) (any, error) {
		handle(ctx)
		return nil, nil
	}
}
