package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
)

// Pages are what people see in a browser. They are asked only for paths that are no route of the API. A page is made whole
// before it is sent; one that is long asks its ResponseWriter for a Streamer.
type Pages interface {
	http.Handler // any path: one that is no page gets a page that says so
	Serves(path string) bool

	// Refuse answers with a page that shows an error met before the page itself was asked.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

// Streamer is what a page's ResponseWriter also is. What write writes is sent as it comes, once the page's handler has
// returned, which is where the status and the headers come from. write gets a context of its own; its error cuts the
// connection, so that nobody takes a part for the whole. An owner has one at a time: Stream returns an error if there is
// no place for another.
type Streamer interface {
	Stream(owner string, write func(ctx context.Context, w io.Writer) error) error
}

const (
	pageBodyBytesMax = 4 << 20 // of a form
	streamTimeMax    = time.Hour
)

// isForPages reports whether a call that no route takes is answered with a page. It is when its path is a page's, or
// when a browser asks for a path that no program would: programs get errors as JSON whatever they accept, because some
// HTTP libraries name text/html by default.
func (a *API) isForPages(ctx *fasthttp.RequestCtx) bool {
	if a.c.Pages == nil {
		return false
	}
	path := string(ctx.Path())
	if a.c.Pages.Serves(path) {
		return true
	}
	return !programPaths[firstSegment(path)] && bytes.Contains(ctx.Request.Header.PeekCanonical(acceptHeader), []byte("text/html"))
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

// page answers a call with a page.
func (a *API) page(ctx *fasthttp.RequestCtx) {
	life := &callLife{parent: a.life, deadline: time.Now().Add(callTimeMax)}
	defer life.end()
	if ctx.IsGet() {
		life.conn = ctx.Conn()
	}
	w := &pageWriter{header: http.Header{}, status: http.StatusOK, exports: a.pageExports}

	b, err := a.readBody(ctx, pageBodyBytesMax, noKey)
	if err != nil {
		drain(ctx)
		a.c.Pages.Refuse(w, pageRequest(life, ctx, nil), err)
	} else {
		defer b.release()
		a.c.Pages.ServeHTTP(w, pageRequest(life, ctx, b.bytes))
	}
	w.send(a, ctx)
}

// pageRequest makes a request of net/http. It shares nothing with ctx but the body's bytes. An address that net/http
// cannot read is no page's; its path stays as it came.
func pageRequest(life context.Context, ctx *fasthttp.RequestCtx, body []byte) *http.Request {
	r, err := http.NewRequestWithContext(life, string(ctx.Method()), string(ctx.RequestURI()), bytes.NewReader(body))
	if err != nil {
		at := &url.URL{Path: "/" + string(ctx.URI().PathOriginal())}
		r = (&http.Request{Method: string(ctx.Method()), URL: at, Header: http.Header{}, Body: http.NoBody}).WithContext(life)
	}
	r.Host, r.RequestURI = string(ctx.Host()), string(ctx.RequestURI())
	r.RemoteAddr, r.TLS = ctx.RemoteAddr().String(), ctx.TLSConnectionState()
	for k, v := range ctx.Request.Header.All() {
		r.Header.Add(string(k), string(v))
	}
	return r
}

// pageWriter keeps a page until its handler has returned.
type pageWriter struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	exports *admission.Pool

	stream func(ctx context.Context, w io.Writer) error
	end    func() // of the stream's place
}

func (w *pageWriter) Header() http.Header         { return w.header }
func (w *pageWriter) WriteHeader(status int)      { w.status = status }
func (w *pageWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// Stream is Streamer's.
func (w *pageWriter) Stream(owner string, write func(ctx context.Context, w io.Writer) error) error {
	end, err := beginExport(w.exports, owner)
	if err == nil {
		w.stream, w.end = write, end
	}

	return err
}

func (w *pageWriter) send(a *API, ctx *fasthttp.RequestCtx) {
	for k, values := range w.header {
		for _, v := range values {
			ctx.Response.Header.Add(k, v)
		}
	}
	ctx.SetStatusCode(w.status)

	if w.stream == nil {
		ctx.SetBody(pack(ctx, w.body.Bytes()))
		return
	}
	a.stream(ctx, streamTimeMax, w.end, w.stream)
}
