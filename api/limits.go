package api

import (
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/metrics"
)

// smallBytes is up to which capacity a body counts as small, which nearly all writes, fetches
// and pages are.
const smallBytes = 64 << 10

// stranger owns the bodies of callers who have not shown a key.
const stranger = ""

// newBodyPool bounds the bytes of all bodies held at the same time, so that many large uploads
// meet a 503 and not the kernel's out-of-memory killer:
//
//   - an eighth is left for small bodies;
//   - the larger bodies of one key may take a half, and those of all strangers a quarter; or the
//     room of one body of the largest size, where that is more.
//
// A sidecar's pool is too small for shares: the beginnings of several bodies of one key would
// keep each of them from getting whole.
func newBodyPool(bytes, bodyBytesMax int64) *admission.Pool {
	one := min(bytes, bodyBytesMax+1)
	ofKey, ofStrangers := max(bytes/2, one), max(bytes/4, one)
	if bytes < 3*one {
		ofKey, ofStrangers = bytes, bytes
	}

	return admission.NewPool(admission.Rules{
		Size: bytes,
		Share: func(owner string, _, _ int64) int64 {
			if owner == stranger {
				return ofStrangers
			}
			return ofKey
		},
		SmallMax:  smallBytes,
		SmallSize: bytes / 8,
	})
}

// newBatchPool bounds the bytes of the batches held at the same time.
func newBatchPool(bytes int64, m *metrics.Metrics) *admission.Pool {
	return admission.NewPool(admission.Rules{
		Size:  bytes,
		Share: admission.LeftOver,
		Watch: func(held int64) { m.BatchBytes.Set(float64(held)) },
	})
}

// newCallPool bounds how many calls of a kind are under way, in all and of one owner.
func newCallPool(all, ofOwner int64) *admission.Pool {
	return admission.NewPool(admission.Rules{Size: all, Share: admission.Fixed(ofOwner)})
}

// limit holds a call with a body of so many bytes to its key's limits.
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
