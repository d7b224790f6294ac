package ops

import (
	"net/http"
	"net/http/pprof"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"
)

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
