package api

import (
	"sync"
	"time"
)

// Clock tells accepted times, from which ids are minted as well. They never go back, though the system's clock may: a later score
// would lose against an earlier one. Safe for concurrent use.
type Clock struct {
	now func() time.Time

	mu   sync.Mutex
	last time.Time // under mu
}

// NewClock makes a Clock over the system's, which is time.Now if now is nil.
func NewClock(now func() time.Time) *Clock {
	if now == nil {
		now = time.Now
	}
	return &Clock{now: now}
}

// tickStep is the least time between two ticks. The ids of two ticks differ in their time bits, which count in 244 ns.
const tickStep = time.Microsecond

// Tick gives a moment that it gives nobody else, later than all before.
func (c *Clock) Tick() time.Time {
	t := c.now().UTC().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if earliest := c.last.Add(tickStep); t.Before(earliest) {
		t = earliest
	}
	c.last = t
	return t
}

// Now is the time, but never before a tick that was given.
func (c *Clock) Now() time.Time {
	t := c.now().UTC().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.last) {
		t = c.last
	}
	return t
}

// StartAfter has ticks come after t: what was accepted before a restart.
func (c *Clock) StartAfter(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t = t.UTC().Round(0); t.After(c.last) {
		c.last = t
	}
}
