package api

import (
	"bytes"
	"errors"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

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
