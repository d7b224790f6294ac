package api

import (
	"math/rand/v2"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/metrics"
)

// shares bounds the bytes of the batches that are held at once, and divides them between keys: beside its first batch, a key
// may hold as much as is left over. So one greedy key gets a half, two a third each, and so on, and there is always room for
// who comes next. (Choudhury and Hahne, "Dynamic queue length thresholds", 1998, with a factor of 1.)
type shares struct {
	metrics *metrics.Metrics
	comeback

	mu   sync.Mutex
	free int64            // under mu
	held map[string]int64 // under mu; by key
}

func newShares(bytesMax int64, m *metrics.Metrics) *shares {
	return &shares{metrics: m, free: bytesMax, held: map[string]int64{}}
}

// claim is what one batch holds. Used by one goroutine.
type claim struct {
	shares *shares
	key    string
	bytes  int64
}

// grow claims more bytes: 429 if the key has its share, 503 if there are no more.
func (c *claim) grow(n int64) error {
	s := c.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	others := s.held[c.key] - c.bytes // of the key's other batches
	switch {
	case n > s.free:
		s.metrics.Shed.WithLabelValues("bytes").Inc()
		return wire.Unavailable(s.delay(), "The server holds as many bytes of batches as it may. Send this again later.")
	case others > 0 && others+c.bytes+n > s.free-n:
		s.metrics.Shed.WithLabelValues("share").Inc()
		return &wire.Error{Code: wire.CodeTooMany, RetryAfter: s.delay(), Message: "The server holds as many bytes of this key's batches as is fair to others. Send this again later, or fewer at once."}
	}
	s.free -= n
	s.held[c.key] += n
	c.bytes += n
	s.metrics.BatchBytes.Add(float64(n))
	return nil
}

// shrink gives bytes back.
func (c *claim) shrink(n int64) {
	s := c.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	c.bytes -= n
	s.metrics.BatchBytes.Sub(float64(n))
	if s.held[c.key] -= n; s.held[c.key] == 0 {
		delete(s.held, c.key)
	}
}

// comeback tells those who are turned away when to come back: each another moment, within a span that grows with their
// number, so that they do not return as one crowd. Safe for concurrent use.
type comeback struct {
	mu     sync.Mutex
	turned float64   // under mu; turned away lately, fading with comebackFade
	at     time.Time // under mu; of the last one
}

const (
	comebackRate = 200 // returns a second that the span aims at
	comebackMin  = 2 * time.Second
	comebackMax  = 30 * time.Second
	comebackFade = 10 * time.Second
)

func (c *comeback) delay() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.turned = 1 + c.turned*max(0, 1-float64(now.Sub(c.at))/float64(comebackFade))
	c.at = now
	span := min(max(time.Duration(c.turned/comebackRate*float64(time.Second)), comebackMin), comebackMax)
	return time.Second/2 + rand.N(span)
}
