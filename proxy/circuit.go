package proxy

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	retryDelayMin = 100 * time.Millisecond
	retryDelayMax = 5 * time.Second
)

// circuit lets calls through to the server while it answers. After a failure it is open: it lets one probe through at a time, after
// a full-jitter backoff, and everybody else waits for the outcome. It never gives up. Safe for concurrent use.
type circuit struct {
	mu       sync.Mutex
	failures int           // in a row; 0 is closed
	next     time.Time     // of the next probe
	probing  bool          // one is under way
	changed  chan struct{} // closed and made anew at every report
}

func newCircuit() *circuit { return &circuit{changed: make(chan struct{})} }

// admit waits until a call may be made. Every admitted call must be reported.
func (c *circuit) admit(ctx context.Context) error {
	for {
		c.mu.Lock()
		if c.failures == 0 {
			c.mu.Unlock()
			return ctx.Err()
		}
		wait := time.Until(c.next)
		if !c.probing && wait <= 0 {
			c.probing = true
			c.mu.Unlock()
			return nil
		}
		changed := c.changed
		if c.probing {
			wait = time.Hour // its report wakes us
		}
		c.mu.Unlock()
		if err := sleep(ctx, wait, changed); err != nil {
			return err
		}
	}
}

// report tells how an admitted call went. retryAfter, which the server asked for, is the least delay before the next probe.
func (c *circuit) report(ok bool, retryAfter time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
	if ok {
		c.failures = 0
	} else {
		c.next = time.Now().Add(max(retryAfter, backoff(c.failures)))
		c.failures++
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// backoff is a random delay of at most retryDelayMin doubled by every failure before, and at most retryDelayMax: full jitter, so
// that many sidecars do not come back at the same moment
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func backoff(failures int) time.Duration {
	most := min(retryDelayMax, retryDelayMin<<min(failures, 10))
	return 1 + rand.N(most)
}

// sleep waits for a while, or until wake closes, or ctx ends: only then it returns an error.
func sleep(ctx context.Context, wait time.Duration, wake <-chan struct{}) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
	case <-wake:
	}
	return nil
}
