package admission

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	retriesPerSecond = 200 // that the delays aim at
	retrySpanMin     = 2 * time.Second
	retrySpanMax     = 30 * time.Second
	refusedFade      = 10 * time.Second
)

// RetryAfter chooses when callers who were refused should come back. Each gets another delay,
// within a span that grows with their number, so that they do not return as one crowd. The zero
// value is ready. Safe for concurrent use.
type RetryAfter struct {
	mu      sync.Mutex
	refused float64   // under mu; requests refused lately, fading with refusedFade
	at      time.Time // under mu; of the last one
}

// Next returns the delay for a request that is refused now.
func (r *RetryAfter) Next() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	now := time.Now()
	r.refused = 1 + r.refused*max(0, 1-float64(now.Sub(r.at))/float64(refusedFade))
	r.at = now
	span := time.Duration(r.refused / retriesPerSecond * float64(time.Second))

	return time.Second/2 + rand.N(min(max(span, retrySpanMin), retrySpanMax))
}
