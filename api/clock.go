package api

import (
	"sync"
	"time"
)

// clock tells accepted times: the system's, but never going back within this process.
type clock struct {
	now func() time.Time

	mu   sync.Mutex
	last time.Time // under mu
}

func (c *clock) tick() time.Time {
	t := c.now().UTC().Round(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Before(c.last) {
		t = c.last
	}
	c.last = t
	return t
}
