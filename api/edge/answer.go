package edge

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"

	"promptspool/api/wire"
)

// PooledAnswerMax is the size up to which the buffer of an answer is kept for others.
const PooledAnswerMax = 1 << 20

var answerPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// WriteJSON answers a call with v as JSON. Strings keep their < > & as they are.
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

// WriteError answers a call with an error, in the one shape that errors have.
func WriteError(ctx *fasthttp.RequestCtx, err error) {
	e := wire.AsError(err)
	if e.RetryAfter > 0 {
		ctx.Response.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}

	WriteJSON(ctx, e.Status(), e.Body())
}
