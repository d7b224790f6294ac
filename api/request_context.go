package api

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// requestContext is the context of a request. It ends with the API, after requestTimeMax,
// when the request is answered, or when its caller leaves.
type requestContext struct {
	context.Context
	end   context.CancelFunc // a capability that still has it finds it canceled
	claim admission.RoomClaim

	peer    net.Addr      // the other end of the connection
	proxies *edge.Proxies // who may say for whom they call, with these headers
	hops    []string
}

// leftCheckInterval is how often a long request checks that its caller is still there. The
// first check comes no earlier either: a caller who closes its side of the connection
// after a request still gets the answer to a short one.
const leftCheckInterval = 400 * time.Millisecond

// endWhenLeft ends the context when its caller leaves.
func (c *requestContext) endWhenLeft(conn net.Conn) {
	ctx, cancel := c.Context, c.end
	look := time.AfterFunc(leftCheckInterval, func() { cancelWhenLeft(ctx, cancel, conn) })
	c.end = func() {
		look.Stop()
		cancel()
	}
}

// cancelWhenLeft cancels a context when the caller has left.
func cancelWhenLeft(ctx context.Context, cancel context.CancelFunc, conn net.Conn) {
	tick := time.NewTicker(leftCheckInterval)
	defer tick.Stop()

	for ctx.Err() == nil {
		if edge.HasLeft(conn) {
			cancel()
			return
		}

		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// beginContext begins the context of a request that came at a time.
func (a *API) beginContext(c *requestContext, ctx *fasthttp.RequestCtx, started time.Time) {
	c.Context, c.end = context.WithDeadline(a.root, started.Add(requestTimeMax))
	c.peer, c.proxies = ctx.RemoteAddr(), &a.c.Proxies
	if !c.proxies.Any() {
		return
	}
	for _, hop := range ctx.Request.Header.PeekAll(edge.ForwardedFor) {
		c.hops = append(c.hops, string(hop))
	}
}

// Value returns the request's claim of the room, or where it came from.
func (c *requestContext) Value(key any) any {
	switch key {
	case admission.RoomKey:
		return &c.claim
	case wire.FromKey:
		return c.proxies.Client(c.peer, c.hops)
	}

	return c.Context.Value(key)
}
