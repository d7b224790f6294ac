package api

import (
	"context"
	"log/slog"
	"sync"

	"github.com/valyala/fasthttp"

	"promptspool/api/edge"
	"promptspool/api/wire"
)

// templatePool holds buffers for fetched templates and for their llm_kwargs.
var templatePool = sync.Pool{New: func() any { return new([]byte) }}

// poolTemplateBuffer puts a buffer back into templatePool, unless it is large.
func poolTemplateBuffer(b *[]byte) {
	if cap(*b) <= edge.PooledAnswerMax {
		templatePool.Put(b)
	}
}

// writeTemplate answers a request with a fetched template.
func writeTemplate(ctx *fasthttp.RequestCtx, t *wire.RenderedTemplate) {
	ctx.SetStatusCode(200)
	ctx.SetContentType("application/json")

	// The response owns the filled buffer from here on. In exchange the pool gets the buffer
	// that the response had before, so nothing is copied.
	b := templatePool.Get().(*[]byte)
	*b = ctx.Response.SwapBody(append(t.AppendJSON((*b)[:0]), '\n'))
	poolTemplateBuffer(b)
}

// answer answers a request with what its capability returned.
func (c *exchange) answer(v any, err error) error {
	if err != nil {
		return err
	}
	edge.WriteJSON(c.ctx, 200, c.withWarnings(v))
	return nil
}

// answerFrom decodes a request's body, asks a capability, and answers with what that returns.
func answerFrom[Q, A any](
	c *exchange, decode func(wire.Object) (Q, error), ask func(context.Context, wire.Identity, Q) (A, error),
) error {
	q, err := decode(c.object)
	if err != nil {
		return err
	}
	answer, err := ask(c.context, c.id, q)
	return c.answer(answer, err)
}

// writeError answers with an error. Internal errors are logged with their cause, which the
// answer does not reveal.
func writeError(ctx *fasthttp.RequestCtx, logger *slog.Logger, err error) {
	e := wire.AsError(err)
	if e.Status() == 500 {
		logger.Error("a request failed", "path", string(ctx.Path()), "error", e)
	} else if e.Cause != nil {
		logger.Debug("a request was refused", "path", string(ctx.Path()), "error", e)
	}

	edge.WriteError(ctx, e)
}

// parseError answers what fasthttp could not read as a request. fasthttp closes the connection
// afterwards.
func parseError(version string) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		ctx.Response.Header.Set("Promptspool-Version", version)
		edge.WriteParseError(ctx, err)
	}
}
