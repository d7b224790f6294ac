package api

import (
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
)

// newCallPool bounds how many calls of a kind are under way, in all and of one owner.
func newCallPool(all, ofOwner int64) *admission.Pool {
	return admission.NewPool(admission.Rules{Size: all, Share: admission.Fixed(ofOwner)})
}

// limit rejects a call with a body of so many bytes if its key has reached a limit.
func (a *API) limit(c *call, bytes int) error {
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
