package api

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// templatePool holds bytes for fetched templates, and for their llm_kwargs.
var templatePool = sync.Pool{New: func() any { return new([]byte) }}

// keepBytes gives bytes back to templatePool, unless they are many.
func keepBytes(b *[]byte) {
	if cap(*b) <= edge.PooledAnswerMax {
		templatePool.Put(b)
	}
}

// writeTemplate is writeJSON for a fetched template.
func writeTemplate(ctx *fasthttp.RequestCtx, t *wire.RenderedTemplate) {
	ctx.SetStatusCode(200)
	ctx.SetContentType("application/json")
	b := templatePool.Get().(*[]byte)
	*b = ctx.Response.SwapBody(append(t.AppendJSON((*b)[:0]), '\n')) // what it had serves the next
	keepBytes(b)
}

// answer answers a call with what its capability returned.
func (c *call) answer(v any, err error) error {
	if err != nil {
		return err
	}

	edge.WriteJSON(c.ctx, 200, v)
	return nil
}

// pass decodes a call's body, hands what it asks for to a capability, and answers with what that returns.
func pass[Q, A any](
	c *call, decode func(wire.Object) (Q, error), do func(context.Context, wire.Identity, Q) (A, error),
) error {
	q, err := decode(c.object)
	if err != nil {
		return err
	}

	answer, err := do(c.life, c.id, q)
	return c.answer(answer, err)
}

// writeError answers with an error. What is our fault is logged with its cause, which the answer does not tell.
func writeError(ctx *fasthttp.RequestCtx, logger *slog.Logger, err error) {
	e := wire.AsError(err)
	if e.Status() == 500 {
		logger.Error("a call failed", "path", string(ctx.Path()), "error", e)
	} else if e.Cause != nil {
		logger.Debug("a call was refused", "path", string(ctx.Path()), "error", e)
	}

	edge.WriteError(ctx, e)
}

const notInTime = "The call did not come in time. Send it again, on a new connection."

// late is the error of a call whose body did not come in time.
func late(err error) error {
	return &wire.Error{Code: wire.CodeTimeout, Message: notInTime, Cause: err}
}

// parseError answers what fasthttp could not read as a request. The connection is closed behind it.
func parseError(version string) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		ctx.Response.Header.Set("Promptspool-Version", version)
		var small *fasthttp.ErrSmallBuffer
		switch {
		case errors.As(err, &small):
			edge.WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The request's header is too large; at most 16 KiB are read."))
			ctx.SetStatusCode(fasthttp.StatusRequestHeaderFieldsTooLarge)
		case errors.Is(err, fasthttp.ErrBodyTooLarge):
			edge.WriteError(ctx, wire.Errorf(wire.CodeTooLarge, "The body is too large."))
		case edge.IsLate(err):
			// Also on a connection that was opened and never used: a client knows that a 408 is no answer to the call that it was about to
			// send (RFC 9110, 15.5.9), which it might take a 400 for.
			edge.WriteError(ctx, wire.Errorf(wire.CodeTimeout, notInTime))
		default:
			edge.WriteError(ctx, wire.Errorf(wire.CodeBadJSON, "This is not a whole, valid HTTP request."))
		}
	}
}
