package api

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"promptspool/api/admission"
	"promptspool/api/edge"
	"promptspool/api/wire"
)

// requestContext is the context of a request. It ends with the API, after requestTimeMax,
// when the request is answered, or when its caller leaves.
//
// Most requests are answered without waiting for anything. So only a call of Done, or of Err
// after a while, makes a real context, with a timer. Safe for concurrent use.
type requestContext struct {
	parent   context.Context
	deadline time.Time
	conn     net.Conn // the caller's; if it is nil, the request continues after its caller has left
	claim    admission.RoomClaim

	peer    net.Addr      // the other end of the connection
	proxies *edge.Proxies // who may say for whom they call, with these headers
	hops    []string

	mu     sync.Mutex
	ctx    context.Context    // under mu; nil until it is needed
	cancel context.CancelFunc // under mu; of ctx
	ended  bool               // under mu
}

// end ends the context. A capability that still has it finds it canceled.
func (c *requestContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
	}
}

// timed returns the real context after this one, and makes it if there is none yet.
func (c *requestContext) timed() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil {
		c.ctx, c.cancel = context.WithDeadline(c.parent, c.deadline)
		if c.ended {
			c.cancel()
		} else if c.conn != nil {
			go cancelWhenLeft(c.ctx, c.cancel, c.conn)
		}
	}

	return c.ctx
}

// leftCheckInterval is how often a long request checks that its caller is still there. The
// first check comes no earlier either: a caller who closes its side of the connection
// after a request still gets the answer to a short one.
const leftCheckInterval = 400 * time.Millisecond

// cancelWhenLeft cancels a context when the caller has left.
func cancelWhenLeft(ctx context.Context, cancel context.CancelFunc, conn net.Conn) {
	tick := time.NewTicker(leftCheckInterval)
	defer tick.Stop()

	for {
		select {
		case <-tick.C:
			if edge.HasLeft(conn) {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Deadline returns the time requestTimeMax after the request came.
func (c *requestContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns a channel that is closed when the context ends.
func (c *requestContext) Done() <-chan struct{} { return c.timed().Done() }

// Err returns why the context ended, or nil if it has not.
func (c *requestContext) Err() error {
	c.mu.Lock()
	ctx, ended := c.ctx, c.ended
	c.mu.Unlock()

	// Stores ask for Err between rows and never for Done. From now on a caller who leaves must
	// end their work, too.
	if ctx == nil && c.conn != nil && !ended && time.Until(c.deadline) < requestTimeMax-leftCheckInterval {
		ctx = c.timed()
	}

	switch {
	case ctx != nil:
		return ctx.Err()
	case ended:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}

	return c.parent.Err()
}

// beginContext begins the context of a request that came at a time.
func (a *API) beginContext(c *requestContext, ctx *fasthttp.RequestCtx, started time.Time) {
	c.parent, c.deadline = a.root, started.Add(requestTimeMax)
	c.peer, c.proxies = ctx.RemoteAddr(), &a.c.Proxies
	if !c.proxies.Any() {
		return
	}
	for _, hop := range ctx.Request.Header.PeekAll(edge.ForwardedFor) {
		c.hops = append(c.hops, string(hop))
	}
}

// Value returns the request's claim of the room, where it came from, or what the real context has: package
// context finds out there what to end together with it.
func (c *requestContext) Value(key any) any {
	switch key {
	case admission.RoomKey:
		return &c.claim
	case wire.FromKey:
		return c.proxies.Client(c.peer, c.hops)
	}

	return c.timed().Value(key)
}
