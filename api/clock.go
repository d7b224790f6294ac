package api

import (
	"sync"
	"time"
)

// Clock gives the times at which events are accepted, from which ids are minted as well. They
// never go back, though the system's clock may: a later score would lose against an earlier one.
// Safe for concurrent use.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last time.Time // under mu
}

// NewClock makes a Clock from a system's clock, which is time.Now if now is nil.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// tickStep is the least time between two ticks. It is more than the 244 ns that the time bits of
// an id count in, so that the ids of two ticks differ in these.
const tickStep = time.Microsecond

// Tick returns a moment that it returns only once, later than all before.
func (c *Clock) Tick() time.Time {
	t := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if earliest := c.last.Add(tickStep); t.Before(earliest) {
		t = earliest
	}
	c.last = t

	return t
}

// read returns the system's time without its monotonic part: ticks are compared with times from
// before a restart.
func (c *Clock) read() time.Time { return c.now().UTC().Round(0) }

// Now returns the time, but never one before the last tick.
func (c *Clock) Now() time.Time {
	t := c.read()
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.last) {
		t = c.last
	}

	return t
}

// StartAfter makes all ticks come after t, the last time that was accepted before a restart.
func (c *Clock) StartAfter(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t = t.UTC().Round(0)
	if t.After(c.last) {
		c.last = t
	}
}
