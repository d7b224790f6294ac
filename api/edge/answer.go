package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// HeadBytesMax bounds the head of a request; it is a server's ReadBufferSize.
const HeadBytesMax = 16 << 10

// PooledAnswerMax is the size up to which the buffer of an answer is kept for others.
const PooledAnswerMax = 1 << 20

var answerPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// WriteJSON answers a request with v as JSON. Strings keep their < > & as they are.
func WriteJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	buf := answerPool.Get().(*bytes.Buffer)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		buf.Reset()
		status = 500
		buf.WriteString(`{"success":false,"error":"internal",` +
			`"message":"The answer could not be encoded.","fields":[]}`)
	}

	// SetBody copies: the buffer can serve others then.
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(buf.Bytes())
	if buf.Cap() <= PooledAnswerMax {
		answerPool.Put(buf)
	}
}

// WriteError answers a request with an error, in the one shape that errors have.
func WriteError(ctx *fasthttp.RequestCtx, err error) {
	e := wire.AsError(err)
	if e.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}

	WriteJSON(ctx, e.Status(), e.Body())
}

// WriteParseError answers what fasthttp could not read as a request.
func WriteParseError(ctx *fasthttp.RequestCtx, err error) {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(err, &small):
		WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The request's header is too large; at most %d KiB are read.",
			HeadBytesMax>>10))
		ctx.SetStatusCode(fasthttp.StatusRequestHeaderFieldsTooLarge)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The body is too large."))
	case IsLate(err):
		// This also answers a connection that was opened and never used. A client knows that
		// a 408 is not an answer to the request that it was about to send (RFC 9110, 15.5.9); it
		// might take a 400 for one.
		WriteError(ctx, TimeoutError(err))
	default:
		WriteError(ctx, wire.Errorf(wire.CodeBadJSON, "This is not a complete, valid HTTP request."))
	}
}

// TimeoutError returns the error of a request that took too long to arrive.
func TimeoutError(cause error) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeTimeout,
		Message: "The request took too long to arrive. Send it again on a new connection.",
		Cause:   cause,
	}
}
