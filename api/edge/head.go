package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// CheckHead refuses a head of which something between an app and us may read another end of the request than we do: with both a length
// and chunks, with another encoding than chunks, with a folded line, or with a line that ends without a carriage return (RFC 9112, sections 2.2, 5.2, 6.3). The connection
// is closed, so that nothing behind it is taken for a request.
func CheckHead(ctx *fasthttp.RequestCtx) error {
	h := &ctx.Request.Header
	raw, told, chunks, what := h.RawHeaders(), false, false, ""
	for len(raw) > 0 && what == "" {
		line := raw
		if end := bytes.IndexByte(raw, '\n'); end >= 0 {
			line, raw = raw[:end], raw[end+1:]
			if end == 0 || line[end-1] != '\r' {
				what = "a line that ends without a carriage return"
			}
		} else {
			raw = nil
		}
		switch {
		case len(line) > 0 && (line[0] == ' ' || line[0] == '\t'):
			what = "a folded line"
		case len(line) >= 15 && bytes.EqualFold(line[:15], []byte("content-length:")):
			told = true
		case len(line) >= 18 && bytes.EqualFold(line[:18], []byte("transfer-encoding:")):
			chunks = true
			if !bytes.EqualFold(bytes.TrimSpace(line[18:]), []byte("chunked")) {
				what = "a Transfer-Encoding other than chunked"
			}
		}
	}
	if told && chunks {
		what = "both Content-Length and Transfer-Encoding"
	}
	if what == "" {
		return nil
	}
	ctx.SetConnectionClose()
	return wire.Errorf(wire.CodeBadJSON, "The request's head holds %s, so where the request ends is in doubt. Send it without.", what)
}
