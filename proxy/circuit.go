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

// pacer keeps forwarding from slowing down an app that writes. Reading and compressing a
// backlog takes a processor for milliseconds on end. That is longer than Go or the kernel
// let a write wait that needs it for a moment, several times over: for its call, its
// commit, its answer. So while the app writes, the work is done in pieces of some tenths
// of a millisecond, with a rest of the same length after each. A backlog then drains at
// about half of the speed. When the app is quiet nothing rests. Safe for concurrent use.
type pacer struct {
	next func() uint64 // the sequence that the next event will get

	mu   sync.Mutex
	seen uint64    // under mu; what next returned last
	at   time.Time // under mu; when it was seen that the app had written
}

const (
	writingFor = time.Second            // how long after its last write an app counts as writing
	pieceTime  = 250 * time.Microsecond // of work without a rest
	pieceBytes = 64 << 10               // of one reading of the spool; compression has blocks of 128 KiB
	restMax    = 2 * time.Millisecond   // a piece that took longer was itself kept waiting
)

func newPacer(next func() uint64) *pacer { return &pacer{next: next, seen: next()} }

// writing reports whether the app has written within the last second, as far
// as anything looked.
func (p *pacer) writing() bool {
	// The sequence grows with every write, so writes need not tell us of themselves.
	next, now := p.next(), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()

	if next != p.seen {
		p.seen, p.at = next, now
	}

	return now.Sub(p.at) < writingFor
}

// rest lets writers go first, if there are any and the work since begun was a piece. It
// returns when the next piece begins.
func (p *pacer) rest(begun time.Time) time.Time {
	took := time.Since(begun)
	if took < pieceTime {
		return begun
	}

	if p.writing() {
		time.Sleep(min(took, restMax))
	}
	return time.Now()
}
