package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

// callerKey is what the context of a message from an agent returns its exchange for.
type callerKey struct{}

// mcp answers a message of the Model Context Protocol.
func (a *API) mcp(c *exchange) error {
	w := &pageWriter{header: http.Header{}, status: http.StatusOK}
	r := a.pageRequest(context.WithValue(c.context, callerKey{}, c), c.ctx, c.body)
	// As with other routes, it does not matter whether the caller says so.
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	a.agents.ServeHTTP(w, r)

	// The protocol rejects with a text until it has read a message.
	if w.status >= 400 && w.header.Get("Content-Type") != "application/json" {
		return wire.Errorf(wire.CodeOfStatus(w.status), "%s.", bytes.TrimSpace(w.body.Bytes()))
	}
	w.send(a, c.ctx)

	return nil
}

// callRoute answers a call that a tool makes for an agent, with the agent's rights. The answer is that of the
// route.
func (a *API) callRoute(ctx context.Context, method, target string, body []byte) (json.RawMessage, error) {
	inner := new(fasthttp.RequestCtx)
	inner.Init(new(fasthttp.Request), nil, nil)
	inner.Request.SetRequestURI(target)
	r, ident, _, err := findRoute([]byte(method), inner.URI().PathOriginal())
	if err != nil {
		return nil, err
	}

	claim := a.c.Room.Claim(r.isForApps())
	defer claim.Release()
	// Its context ends when the caller leaves, as that of the message does not with older protocols.
	caller := ctx.Value(callerKey{}).(*exchange)
	c := &exchange{
		ctx:     inner,
		context: admission.WithRoom(caller.context, &claim),
		route:   r,
		ident:   ident,
		id:      caller.id,
	}
	err = a.missingCapability(r)
	if err == nil && body != nil {
		c.object, err = wire.ParseObject(body)
	}
	if err == nil {
		err = a.mayCall(c)
	}
	if err == nil {
		err = c.checkMembers()
	}
	if err == nil {
		err = r.handle(a, c)
	}
	if err != nil {
		logError(inner, a.c.Logger, wire.AsError(err))
	}

	return inner.Response.Body(), err
}
