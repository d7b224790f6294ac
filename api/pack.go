package api

import (
	"bytes"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"
)

// packedMin is from how many bytes on a page is packed: less fits into one packet anyway.
const packedMin = 1400

// packers are reused: each holds some hundred kilobytes.
var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("api: gzip level: " + err.Error()) // it is a constant
	}
	return w
}}

// pack packs a page for who takes that. What is secret in a page must look different each time that it is served, or its length would
// tell of it ("BREACH", Gluck, Harris, Prado 2013): the token in forms does.
func pack(ctx *fasthttp.RequestCtx, body []byte) []byte {
	h := &ctx.Response.Header
	kind := string(h.ContentType())
	if !strings.HasPrefix(kind, "text/") && !strings.HasPrefix(kind, "image/svg") {
		return body
	}
	h.Add("Vary", "Accept-Encoding")
	if len(body) < packedMin || len(h.ContentEncoding()) > 0 || !ctx.Request.Header.HasAcceptEncoding("gzip") {
		return body
	}
	w := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	var packed bytes.Buffer
	w.Reset(&packed)
	_, _ = w.Write(body) // a buffer takes all
	if w.Close() != nil {
		return body
	}
	h.SetContentEncoding("gzip")
	h.Del("Content-Length")
	return packed.Bytes()
}
