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

// Pages are what people see in a browser. They are asked only for paths that no route of the API
// has. A page is held in memory until it is complete; a long one asks its ResponseWriter, a
// pageWriter, to Stream it.
type Pages interface {
	http.Handler // for any path: one without a page gets a page that says so
	Serves(path string) bool

	// Refuse answers with a page that shows an error met before the page itself was asked.
	Refuse(w http.ResponseWriter, r *http.Request, err error)
}

const (
	pageBodyBytesMax = 4 << 20 // of a form
	streamTimeMax    = time.Hour
)

// isForPages reports whether a request that no route takes is answered with a page. It is when its
// path has one, or when a browser asks for a path that no program would. Programs get errors as
// JSON whatever they accept, because some HTTP libraries name text/html by default.
func (a *API) isForPages(ctx *fasthttp.RequestCtx) bool {
	if a.c.Pages == nil {
		return false
	}
	path := string(ctx.Path())
	if a.c.Pages.Serves(path) {
		return true
	}
	accepts := ctx.Request.Header.Peek("Accept")

	return !programPaths[firstSegment(path)] && bytes.Contains(accepts, []byte("text/html"))
}

// programPaths are the first segments of all paths that programs call.
var programPaths = func() map[string]bool {
	all := map[string]bool{}
	for _, r := range routes {
		if first := firstSegment(r.path); first != "" {
			all[first] = true
		}
	}
	return all
}()

func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(path, "/"), "/")
	return first
}

// page answers a request with a page.
func (a *API) page(ctx *fasthttp.RequestCtx) {
	pageCtx := new(requestContext)
	a.beginContext(pageCtx, ctx, time.Now())
	if ctx.IsGet() {
		// A page that is only read is of no use once the caller has left.
		pageCtx.endWhenLeft(ctx.Conn())
	}
	defer pageCtx.end()
	w := &pageWriter{header: http.Header{}, status: http.StatusOK, exports: a.pageExports}

	b, err := a.intake.Read(ctx, pageBodyBytesMax, noKey)
	if err != nil {
		admission.Drain(ctx)
		a.c.Pages.Refuse(w, a.pageRequest(pageCtx, ctx, nil), err)
	} else {
		defer b.Release()
		a.c.Pages.ServeHTTP(w, a.pageRequest(pageCtx, ctx, b.Bytes))
	}

	w.send(a, ctx)
}

// noKey identifies the callers of pages, who have no key to show.
func noKey() (owner string, err error) { return admission.Anonymous, nil }

// pageRequest makes a request of net/http. It shares nothing with ctx but the body's bytes. An
// address that net/http cannot read belongs to no page; its path stays as it came.
func (a *API) pageRequest(pageCtx context.Context, ctx *fasthttp.RequestCtx, body []byte) *http.Request {
	method := string(ctx.Method())
	r, err := http.NewRequestWithContext(pageCtx, method, string(ctx.RequestURI()), bytes.NewReader(body))
	if err != nil {
		r = (&http.Request{
			Method: method,
			URL:    &url.URL{Path: "/" + string(ctx.URI().PathOriginal())},
			Header: http.Header{},
			Body:   http.NoBody,
		}).WithContext(pageCtx)
	}

	// All strings are copies: fasthttp reuses the bytes of ctx for the connection's next request.
	// The Host is the header's: ctx.Host would take it from a target such as //host/path?a=://.
	r.Host = string(ctx.Request.Header.Host())
	r.RequestURI = string(ctx.RequestURI())
	r.TLS = ctx.TLSConnectionState()
	for k, v := range ctx.Request.Header.All() {
		r.Header.Add(string(k), string(v))
	}
	a.c.Proxies.Apply(r, ctx.RemoteAddr())

	return r
}

// pageWriter holds a page until its handler has returned.
type pageWriter struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	exports *admission.Pool

	stream  func(ctx context.Context, w io.Writer) error // nil if the page is not streamed
	release func()                                       // of the stream's place among the exports
}

// Header returns the headers that send copies to the answer.
func (w *pageWriter) Header() http.Header { return w.header }

// WriteHeader sets the status.
func (w *pageWriter) WriteHeader(status int) { w.status = status }

// Write adds to the page.
func (w *pageWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// Stream sends what write writes, as it comes, once the page's handler has returned with the status and
// the headers. write gets its own context; its error cuts the connection, so that a part is not taken
// for the whole. An owner has one stream at a time: Stream returns an error if there is no place for
// another.
func (w *pageWriter) Stream(owner string, write func(ctx context.Context, w io.Writer) error) error {
	release, err := begin(w.exports, owner, "export")
	if err != nil {
		return err
	}
	w.stream, w.release = write, release

	return nil
}

// send answers with the page.
func (w *pageWriter) send(a *API, ctx *fasthttp.RequestCtx) {
	for k, values := range w.header {
		for _, v := range values {
			ctx.Response.Header.Add(k, v)
		}
	}
	ctx.SetStatusCode(w.status)

	if w.stream != nil {
		a.stream(ctx, streamTimeMax, w.release, w.stream)
		return
	}
	ctx.SetBody(compress(ctx, w.body.Bytes()))
}

// gzipBytesMin is the smallest page that is compressed. A smaller one fits into one packet anyway.
const gzipBytesMin = 1400

// gzipLevel packs the largest page, of charts full of addresses, into four fifths of what the fastest
// level does, in 0.2 ms more.
const gzipLevel = 5

// compress returns a page compressed, if the caller accepts that, or else as it is.
//
// A secret in a page must look different each time that the page is served, as the token in forms
// does. Otherwise the compressed length would reveal it (BREACH: Gluck, Harris and Prado, 2013).
func compress(ctx *fasthttp.RequestCtx, body []byte) []byte {
	h := &ctx.Response.Header
	kind := string(h.ContentType())
	if !strings.HasPrefix(kind, "text/") && !strings.HasPrefix(kind, "image/svg") {
		return body
	}

	// Caches must know about both forms, even if this caller gets the plain one.
	h.Add("Vary", "Accept-Encoding")
	accepted := ctx.Request.Header.HasAcceptEncoding("gzip")
	if len(body) < gzipBytesMin || len(h.ContentEncoding()) > 0 || !accepted {
		return body
	}

	packed := fasthttp.AppendGzipBytesLevel(nil, body, gzipLevel)
	// More pages than fasthttp packs at the same time.
	if len(packed) == 0 {
		return body
	}
	h.SetContentEncoding("gzip")
	h.Del("Content-Length")

	return packed
}
