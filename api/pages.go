package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// Pages are what people see in a browser. They are asked only for paths that are no route of the API. A page is made whole
// before it is sent; one that is long asks its ResponseWriter for a Streamer.
type Pages interface {
	http.Handler
	Serves(path string) bool
}

// Streamer is what a page's ResponseWriter also is. What write writes is sent as it comes, once the page's handler has
// returned, which is where the status and the headers come from. write gets a context of its own; its error cuts the
// connection, so that nobody takes a part for the whole.
type Streamer interface {
	Stream(write func(ctx context.Context, w io.Writer) error)
}

const (
	pageBodyBytesMax = 4 << 20 // of a form
	streamTimeMax    = time.Hour
)

// page answers a call with a page.
func (a *API) page(ctx *fasthttp.RequestCtx) error {
	b, err := a.readBody(ctx, pageBodyBytesMax)
	if err != nil {
		return err
	}
	defer b.release()
	life, done := context.WithTimeout(a.life, callTimeMax)
	defer done()
	r, err := pageRequest(life, ctx, b.bytes)
	if err != nil {
		return wire.Errorf(wire.CodeNotFound, "There is no such page.")
	}
	w := &pageWriter{header: http.Header{}, status: http.StatusOK}
	a.c.Pages.ServeHTTP(w, r)
	w.send(a, ctx)
	return nil
}

// pageRequest makes a request of net/http. It shares nothing with ctx but the body's bytes.
func pageRequest(life context.Context, ctx *fasthttp.RequestCtx, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(life, string(ctx.Method()), string(ctx.RequestURI()), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host, r.RequestURI = string(ctx.Host()), string(ctx.RequestURI())
	r.RemoteAddr, r.TLS = ctx.RemoteAddr().String(), ctx.TLSConnectionState()
	for k, v := range ctx.Request.Header.All() {
		r.Header.Add(string(k), string(v))
	}
	return r, nil
}

// pageWriter keeps a page until its handler has returned.
type pageWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
	stream func(ctx context.Context, w io.Writer) error
}

func (w *pageWriter) Header() http.Header         { return w.header }
func (w *pageWriter) WriteHeader(status int)      { w.status = status }
func (w *pageWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// Stream is Streamer's.
func (w *pageWriter) Stream(write func(ctx context.Context, w io.Writer) error) { w.stream = write }

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
	// Not SetBodyStreamWriter, which ends a part as if it were the whole.
	from, to := io.Pipe()
	ctx.SetBodyStream(from, -1)
	go a.stream(to, w.stream)
}

// stream writes a page that is sent as it comes. When the caller goes, its writes fail.
func (a *API) stream(to *io.PipeWriter, write func(ctx context.Context, w io.Writer) error) {
	life, done := context.WithTimeout(a.life, streamTimeMax)
	defer done()
	defer func() {
		if p := recover(); p != nil {
			a.c.Metrics.Panics.Inc()
			a.c.Logger.Error("a page that is streamed panicked", "panic", p, "stack", string(debug.Stack()))
			to.CloseWithError(io.ErrUnexpectedEOF)
		}
	}()
	buffered := bufio.NewWriterSize(to, 32<<10)
	err := errors.Join(write(life, buffered), buffered.Flush())
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		a.c.Logger.Warn("a page that is streamed was cut", "error", err)
	}
	to.CloseWithError(err)
}
