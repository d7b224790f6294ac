package api

import (
	"bytes"
	"context"
	"errors"
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

// bodyCopies is how many more times a body exists while its request is passed to a server: encoded
// again, then as the answer, decoded and encoded.
const bodyCopies = 5

// takeRoom waits until there is room for what is made of the request's body. A body that
// is recorded is not copied, so it needs none.
func (a *API) takeRoom(c *exchange) error {
	if c.route.needs == recorder {
		return nil
	}
	return admission.AdmitRoom(c.context, bodyCopies*len(c.body))
}

// releaseRoom releases what the request holds of the room: now, or once a large answer has been
// written.
func (c *exchange) releaseRoom() {
	claim := &c.ownContext.claim
	if !claim.Holds() {
		return
	}
	answer := &c.ctx.Response
	if answer.IsBodyStream() || len(answer.Body()) <= admission.SmallBytes {
		claim.Release()
		return
	}

	// A slow reader holds the room of the answer's own bytes, and no longer than the pace of
	// bodies allows.
	body := answer.SwapBody(nil)
	claim.Keep(len(body))
	paced := newPacedReader(c.ctx, bytes.NewReader(body), admission.PaceBytes, admission.PaceTime)
	answer.SetBodyStream(&claimedAnswer{paced, claim}, len(body))
}

// claimedAnswer is an answer that releases its room when it has been written, or the caller has
// left.
type claimedAnswer struct {
	*pacedReader
	claim *admission.RoomClaim
}

// Close releases the room. fasthttp calls it in any case.
func (a *claimedAnswer) Close() error {
	a.claim.Release()
	return nil
}

// newRequestPool bounds how many requests of a kind are under way, in all and of one owner.
func newRequestPool(all, ofOwner int64) *admission.Pool {
	return admission.NewPool(admission.Rules{Size: all, Share: admission.Fixed(ofOwner)})
}

// limit rejects a request with a body of so many bytes if its key has reached a limit.
func (a *API) limit(c *exchange, bytes int) error {
	if a.c.Limiter == nil {
		return nil
	}
	wait, limit := a.c.Limiter.Take(c.id.Key, bytes, time.Now())
	if limit == "" {
		return nil
	}

	a.c.Metrics.Limited.WithLabelValues(limit).Inc()
	e := wire.Errorf(wire.CodeTooMany,
		"This key has reached its limit of %s per second. "+
			"Retry after the time in Retry-After, or raise --key-%s-max.",
		limit, limit)
	e.RetryAfter = max(wait, time.Millisecond)

	return e
}

// begin takes a place among the requests of a kind that read much of the database. Without an
// error, the caller must call release.
func begin(places *admission.Pool, owner, kind string) (release func(), err error) {
	place := places.Claim(owner)
	err = place.Resize(1)
	switch {
	case errors.Is(err, admission.ErrShare):
		return nil, &wire.Error{
			Code:       wire.CodeTooMany,
			RetryAfter: exportRetry,
			Message: "You already have one " + kind + " running. " +
				"Wait until it has ended, then start this one again.",
		}
	case err != nil:
		return nil, wire.Unavailable(exportRetry,
			"The server is already running as many %ss as it can. Try again in a few seconds.", kind)
	}

	return place.Release, nil
}
