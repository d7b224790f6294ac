package api

import (
	"bytes"
	"strings"

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
		ctx.Request.SetRequestURI(string(rest))
	}
}

// OwnPath reports whether the first segment of path is that of a route or a page. Such a path
// cannot be a BasePath: nobody could tell whether a proxy had removed it.
func OwnPath(path string, pages Pages) bool {
	first := firstSegment(path)
	return programPaths[first] || pages.Serves("/"+first) || pages.Serves("/"+first+"/x")
}

// programPaths are the first segments of all paths that programs call.
var programPaths = func() map[string]bool {
	all := map[string]bool{}
	for _, r := range routes {
		all[firstSegment(r.path)] = true
	}
	return all
}()

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(path, "/"), "/")
	return first
}
