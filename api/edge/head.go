package edge

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// CheckHead rejects requests whose end a proxy in front of us might place elsewhere (request
// smuggling). They are those with both a length and chunks, with another encoding than chunks,
// with a folded line, or with a line that ends without a carriage return (RFC 9112, sections 2.2,
// 5.2, 6.3). It has the connection closed, so that nothing after one is taken for a request.
func CheckHead(ctx *fasthttp.RequestCtx) error {
	doubt := doubtfulPart(ctx.Request.Header.RawHeaders())
	if doubt == "" {
		return nil
	}

	ctx.SetConnectionClose()

	return wire.Errorf(wire.CodeBadJSON,
		"The request's head has %s, so where the request ends is in doubt. Send it without.", doubt)
}

// Names of headers, with the colon after them.
var (
	lengthName = []byte("content-length:")
	codingName = []byte("transfer-encoding:")
	chunked    = []byte("chunked")
)

// doubtfulPart names what in a head leaves the end of its request in doubt; "" if nothing does.
func doubtfulPart(head []byte) string {
	hasLength, hasChunks := false, false
	for len(head) > 0 {
		line, rest, ended := bytes.Cut(head, []byte("\n"))
		if ended && !bytes.HasSuffix(line, []byte("\r")) {
			return "a line that ends without a carriage return"
		}
		if bytes.HasPrefix(line, []byte(" ")) || bytes.HasPrefix(line, []byte("\t")) {
			return "a folded line"
		}

		if _, ok := cutName(line, lengthName); ok {
			hasLength = true
		}
		if coding, ok := cutName(line, codingName); ok {
			hasChunks = true
			if !bytes.EqualFold(bytes.TrimSpace(coding), chunked) {
				return "a Transfer-Encoding other than chunked"
			}
		}
		head = rest
	}

	if hasLength && hasChunks {
		return "both Content-Length and Transfer-Encoding"
	}

	return ""
}

// cutName returns the value of a header's line if it has this name, which ends in a colon.
func cutName(line, name []byte) (value []byte, ok bool) {
	// Most names differ in their first letter.
	if len(line) < len(name) || line[0]|0x20 != name[0] || !bytes.EqualFold(line[:len(name)], name) {
		return nil, false
	}

	return line[len(name):], true
}
