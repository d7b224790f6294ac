package api

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// cutBasePath removes Config.BasePath from the path of a call, unless a proxy has already done
// so. Everything behind it sees paths as if there were none.
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
		// What begins with two slashes would name a host.
		ctx.Request.SetRequestURI("/" + string(bytes.TrimLeft(rest, "/")))
	}
}
