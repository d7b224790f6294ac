package queue

import "time"

const (
	// groupWithin is the least time between the starts of two commits of several
	// writers, unless enough of them are queued: a commit costs a fifth of a millisecond
	// of processor time or more, however little is in it.
	groupWithin = 5 * time.Millisecond
	// groupMax is how many writers make a commit worth its cost.
	groupMax = 8
	// crowdWindow is how long, at least, writers that waited together are expected to
	// come together again; at most twice as long.
	crowdWindow = time.Second
)

// crowd counts how many writers waited at the same time recently, including those whose
// events were being committed. Guarded by Queue.mu.
type crowd struct {
	since       time.Time // when the window began
	now, before int       // the maximum of this window, and of the one before
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

// awaitGroup delays a commit until as many writers are queued as waited together recently.
//
// It delays only where several writers come and commits would follow each other closely.
// A writer that comes alone, or seldom, or after all others, does not wait. Only the
// leader calls it.
func (q *Queue) awaitGroup() {
	q.mu.Lock()
	enough, left := min(q.crowd.most(), groupMax), groupWithin-time.Since(q.commitBegan)
	if len(q.queue) >= enough || left <= 0 || q.refusalLocked() != nil {
		q.mu.Unlock()
		return
	}
	full := make(chan struct{})
	q.groupTarget, q.groupFull = enough, full
	q.mu.Unlock()

	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-full:
	case <-timer.C:
	case <-q.closed:
	}

	// Whether or not enough came: the next arrival must not close the channel any more.
	q.mu.Lock()
	defer q.mu.Unlock()
	q.groupFull = nil
}

// noteArrivalLocked counts a writer that was just queued, and wakes awaitGroup if it is
// enough.
func (q *Queue) noteArrivalLocked(at time.Time) {
	q.crowd.note(len(q.queue)+q.committing, at)

	if q.groupFull != nil && len(q.queue) >= q.groupTarget {
		close(q.groupFull)
		q.groupFull = nil
	}
}
