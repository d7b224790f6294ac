package spool

import "time"

const (
	// gatherWithin is how close to each other commits of several writers begin, unless enough of them wait: a commit costs a fifth of
	// a millisecond of a processor or more, however little is in it.
	gatherWithin = 5 * time.Millisecond
	// gatherMax writers make a commit worth its cost.
	gatherMax = 8
	// crowdWindow is for how long, at least, writers that waited together are expected to come together again; at most twice that.
	crowdWindow = time.Second
)

// crowd is how many writers waited at the same time of late, those included whose events were being committed. Under Spool.mu.
type crowd struct {
	since       time.Time // when the window began
	now, before int       // the most in this window, and in the one before
}

func (c *crowd) note(writers int, at time.Time) {
	switch age := at.Sub(c.since); {
	case age > 2*crowdWindow:
		c.since, c.now, c.before = at, 0, 0
	case age > crowdWindow:
		c.since, c.now, c.before = at, 0, c.now
	}
	c.now = max(c.now, writers)
}

func (c *crowd) most() int { return max(c.now, c.before) }

// gather waits, where several writers come and commits would follow each other closely, for as many as waited together of late. A
// writer that comes alone, or seldom, or after all others, does not wait. The caller has the turn to commit.
func (s *Spool) gather() {
	s.mu.Lock()
	enough, left := min(s.crowd.most(), gatherMax), gatherWithin-time.Since(s.commitBegan)
	if len(s.queue) >= enough || left <= 0 || s.refusalLocked() != nil {
		s.mu.Unlock()
		return
	}
	full := make(chan struct{})
	s.gatherTarget, s.gathered = enough, full
	s.mu.Unlock()

	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-full:
	case <-timer.C:
	case <-s.closed:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathered = nil
}

// noteArrivalLocked counts who was queued just now, and wakes who gathers if it is enough. With mu held.
func (s *Spool) noteArrivalLocked(at time.Time) {
	s.crowd.note(len(s.queue)+s.committing, at)
	if s.gathered != nil && len(s.queue) >= s.gatherTarget {
		close(s.gathered)
		s.gathered = nil
	}
}
