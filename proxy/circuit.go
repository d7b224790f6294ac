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

// circuit lets requests through to the server while it answers. After a failure it is open:
// it lets one probe through at a time, after a full-jitter backoff, and all other callers
// wait for the outcome. It never gives up. Safe for concurrent use.
type circuit struct {
	mu       sync.Mutex
	failures int           // in a row, not counting requests that went out beside the first; 0 is closed
	next     time.Time     // of the next probe
	probing  bool          // one is under way
	answered uint64        // requests, in all; from 1
	changed  chan struct{} // closed and replaced at every outcome
}

func newCircuit() *circuit { return &circuit{answered: 1, changed: make(chan struct{})} }

// pass allows one request. Exactly one of its methods must be called when the request is over.
type pass struct {
	circuit *circuit
	probe   bool
}

// admit waits until a request may be made. It fails only when ctx ends.
func (c *circuit) admit(ctx context.Context) (pass, error) {
	for ctx.Err() == nil {
		c.mu.Lock()
		if c.failures == 0 {
			c.mu.Unlock()
			return pass{c, false}, nil
		}

		// It is open. The first caller whose time has come is the probe.
		wait, changed := time.Until(c.next), c.changed
		if !c.probing && wait <= 0 {
			c.probing = true
			c.mu.Unlock()
			return pass{c, true}, nil
		}
		if c.probing {
			wait = time.Hour
		}
		c.mu.Unlock()

		// The outcome of a request that is under way wakes us, too. The loop looks at ctx.
		_ = sleep(ctx, wait, changed)
	}

	return pass{}, ctx.Err()
}

// answered notes that the server gave an answer, whatever it says. All callers may call.
func (p pass) answered() {
	p.end(func(c *circuit) {
		c.failures = 0
		c.answered++
	})
}

// answers returns how many requests were answered so far, from 1.
func (c *circuit) answers() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.answered
}

// abandoned notes that the request says nothing about the server.
func (p pass) abandoned() { p.end(func(*circuit) {}) }

// failed notes that the server gave no answer, or one that asks to come back. retryAfter
// is the least delay before the next probe. Calls that were on their way together when
// the server went away count as one failure.
func (p pass) failed(retryAfter time.Duration) {
	p.end(func(c *circuit) {
		// A request that was under way with others and failed after them tells nothing new,
		// but the server may have asked it for a longer delay.
		wait := retryAfter
		if p.probe || c.failures == 0 {
			wait = max(wait, backoff(c.failures))
			c.failures++
		}
		if next := time.Now().Add(wait); next.After(c.next) {
			c.next = next
		}
	})
}

func (p pass) end(outcome func(*circuit)) {
	c := p.circuit
	c.mu.Lock()
	defer c.mu.Unlock()

	if p.probe {
		c.probing = false
	}
	outcome(c)

	// All who wait look again: one of them may be the next probe.
	close(c.changed)
	c.changed = make(chan struct{})
}

// backoff is a random delay of at most retryDelayMin doubled by every failure before,
// and at most retryDelayMax. With full jitter many sidecars do not come back at the same
// moment (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
func backoff(failures int) time.Duration { return backoffTo(retryDelayMax, failures) }

// backoffTo is backoff with another bound.
func backoffTo(delayMax time.Duration, failures int) time.Duration {
	return 1 + rand.N(min(delayMax, retryDelayMin<<min(failures, 10)))
}

// sleep waits for a while, until wake closes, or until ctx ends. Only then it
// returns an error.
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
