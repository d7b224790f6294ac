package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// errorBody is the one shape of an error.
type errorBody struct {
	Success bool              `json:"success"`
	Error   wire.Code         `json:"error"`
	Message string            `json:"message"`
	Fields  []wire.FieldError `json:"fields"`
}

// pooledAnswerMax is up to what size a buffer of an answer is kept for others.
const pooledAnswerMax = 1 << 20

var answerPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// templatePool holds bytes for the answers of writeTemplate.
var templatePool = sync.Pool{New: func() any { return new([]byte) }}

// writeTemplate is writeJSON for a fetched template.
func writeTemplate(ctx *fasthttp.RequestCtx, t *wire.RenderedTemplate) {
	ctx.SetStatusCode(200)
	ctx.SetContentType("application/json")
	b := templatePool.Get().(*[]byte)
	answer := append(t.AppendJSON((*b)[:0]), '\n')
	if *b = ctx.Response.SwapBody(answer); cap(*b) <= pooledAnswerMax { // nothing is copied; what it had serves the next
		templatePool.Put(b)
	}
}

// writeJSON answers with v. Strings keep their < > & as they are.
func writeJSON(ctx *fasthttp.RequestCtx, status int, v any) {
	buf := answerPool.Get().(*bytes.Buffer)
	buf.Reset()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		buf.Reset()
		status = 500
		buf.WriteString(`{"success":false,"error":"internal","message":"The answer could not be encoded.","fields":[]}`)
	}
	writeBuffer(ctx, status, buf)
}

// writeBuffer answers with what a buffer of the pool holds, and gives it back.
func writeBuffer(ctx *fasthttp.RequestCtx, status int, buf *bytes.Buffer) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.SetBody(buf.Bytes())
	if buf.Cap() <= pooledAnswerMax {
		answerPool.Put(buf)
	}
}

// writeError answers with an error. What is our fault is logged with its cause, which the answer does not tell.
func writeError(ctx *fasthttp.RequestCtx, logger *slog.Logger, err error) {
	e := wire.AsError(err)
	if e.Status() == 500 {
		logger.Error("a call failed", "path", string(ctx.Path()), "error", e)
	} else if e.Cause != nil {
		logger.Debug("a call was refused", "path", string(ctx.Path()), "error", e)
	}
	if e.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(int((e.RetryAfter.Seconds())+0.999)))
	}
	fields := e.Fields
	if fields == nil {
		fields = []wire.FieldError{}
	}
	writeJSON(ctx, e.Status(), errorBody{Error: e.Code, Message: e.Message, Fields: fields})
}

const notInTime = "The call did not come in time. Send it again, on a new connection."

// parseError answers what fasthttp could not read as a request. The connection is closed behind it.
func parseError(version string) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		ctx.Response.Header.Set("Promptspool-Version", version)
		var small *fasthttp.ErrSmallBuffer
		switch {
		case errors.As(err, &small):
			writeJSON(ctx, fasthttp.StatusRequestHeaderFieldsTooLarge, errorBody{Error: wire.CodeTooLarge, Message: "The request's header is too large; at most 16 KiB are read.", Fields: []wire.FieldError{}})
		case errors.Is(err, fasthttp.ErrBodyTooLarge):
			writeJSON(ctx, 413, errorBody{Error: wire.CodeTooLarge, Message: "The body is too large.", Fields: []wire.FieldError{}})
		case edge.IsLate(err):
			// Also on a connection that was opened and never used: a client knows that a 408 is no answer to the call that it was about to
			// send (RFC 9110, 15.5.9), which it might take a 400 for.
			writeJSON(ctx, 408, errorBody{Error: wire.CodeTimeout, Message: notInTime, Fields: []wire.FieldError{}})
		default:
			writeJSON(ctx, 400, errorBody{Error: wire.CodeBadJSON, Message: "This is not a whole, valid HTTP request.", Fields: []wire.FieldError{}})
		}
	}
}
