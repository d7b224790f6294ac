package postgres

import (
	"context"
	"sync"
	"time"

	"promptspool/api/wire"
)

// Bounds of what shares one transaction: memory, and how long the first of it waits. One batch alone may be larger.
const (
	groupBytesMax  = 8 << 20 // of bodies
	groupEventsMax = 2000
)

// lanes is how many transactions of one server write records at the same time.
const lanes = 2

// commitTimeout is how long a group may take, all tries together, before its callers hear that the database is away.
const commitTimeout = 30 * time.Second

// committer gathers the batches that wait into groups, each of which is one transaction. One of those who wait leads: it commits a group,
// while those who come meanwhile gather for the next. It has no goroutine of its own, so none can be missing when it counts.
type committer struct {
	commit func(ctx context.Context, lane int, group []*batch) error
	lanes  chan int // those in which nobody commits

	mu    sync.Mutex
	queue []*batch // under mu
}

func newCommitter(commit func(ctx context.Context, lane int, group []*batch) error) *committer {
	c := &committer{commit: commit, lanes: make(chan int, lanes)}
	for lane := range lanes {
		c.lanes <- lane
	}
	return c
}

// do commits a batch with others. ctx is looked at before the batch waits, not after: one that may have been committed must not be
// reported as cancelled, nor its bytes be reused.
func (c *committer) do(ctx context.Context, b *batch) error {
	if err := ctx.Err(); err != nil {
		return wire.Unavailable(0, "The call ended before it was carried out: %w", err)
	}
	b.done = make(chan error, 1)
	c.mu.Lock()
	c.queue = append(c.queue, b)
	c.mu.Unlock()
	for {
		select {
		case err := <-b.done:
			return err
		case lane := <-c.lanes:
			c.commitGroup(context.WithoutCancel(ctx), lane)
		}
	}
}

// take removes the next group from the queue: the first batch and those behind it that fit.
func (c *committer) take() []*batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes, events := 0, 0, 0
	for n < len(c.queue) && (n == 0 || bytes+c.queue[n].bytes <= groupBytesMax && events+len(c.queue[n].events) <= groupEventsMax) {
		bytes += c.queue[n].bytes
		events += len(c.queue[n].events)
		n++
	}
	group := c.queue[:n:n]
	c.queue = c.queue[n:]
	if len(c.queue) == 0 {
		c.queue = nil // lets go of the array, and of the batches in it
	}
	return group
}

// commitGroup commits the next group and hands the lead on.
func (c *committer) commitGroup(ctx context.Context, lane int) {
	group := c.take()
	defer func() {
		for _, b := range group { // they have their answers, unless something panicked
			b.finish(wire.Errorf(wire.CodeInternal, "A write that shared this one's transaction failed; send it again."))
		}
		c.lanes <- lane
	}()
	if len(group) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	err := c.commit(ctx, lane, group)
	for _, b := range group {
		if err != nil && len(group) > 1 && !wire.IsCode(err, wire.CodeUnavailable) {
			b.finish(c.commit(ctx, lane, []*batch{b})) // so that one that can never be written harms no other
		} else {
			b.finish(err)
		}
	}
}

// finish gives the answer, unless there was one.
func (b *batch) finish(err error) {
	select {
	case b.done <- err:
	default:
	}
}
