package archive

import (
	"context"
	"sync"

	"promptspool/api/wire"
)

// Committer collects the changes that wait into groups, each of which a Store commits as
// one transaction. One of the callers leads: it commits a group, while changes that come
// meanwhile wait for the next. It starts no goroutine, so none can be missing when it
// counts. Safe for concurrent use.
type Committer[T any] struct {
	commit    func(ctx context.Context, lane int, group []*Waiting[T])
	bytesMax  int
	eventsMax int
	lanes     chan int // those that are free

	mu     sync.Mutex
	queue  []*Waiting[T] // under mu
	closed error         // under mu
}

// Waiting is one change on its way to a transaction.
type Waiting[T any] struct {
	Change T
	Bytes  int // of the bodies in it
	Events int

	done chan error // gets one answer
}

// Finish answers the caller, unless it has its answer.
func (w *Waiting[T]) Finish(err error) {
	select {
	case w.done <- err:
	default:
	}
}

// NewCommitter makes a Committer with this many lanes: transactions at the same time. A
// group has at most bytesMax bytes and eventsMax events, unless its only change has more.
// commit must answer each change of the group; its ctx does not end.
func NewCommitter[T any](
	lanes, bytesMax, eventsMax int, commit func(ctx context.Context, lane int, group []*Waiting[T]),
) *Committer[T] {
	c := &Committer[T]{commit: commit, bytesMax: bytesMax, eventsMax: eventsMax, lanes: make(chan int, lanes)}
	for lane := range lanes {
		c.lanes <- lane
	}

	return c
}

// Do commits a change with others, and returns its answer. It looks at ctx before the
// change waits, not after: a change that may have been committed must not be reported as
// cancelled, nor its bytes be reused.
func (c *Committer[T]) Do(ctx context.Context, w *Waiting[T]) error {
	if err := ctx.Err(); err != nil {
		return wire.Unavailable(0, "The request ended before it was carried out: %w", err)
	}
	w.done = make(chan error, 1)
	if err := c.enqueue(w); err != nil {
		return err
	}

	// A caller that finds a lane free leads. Its group may be full before its own change
	// has its turn, so it goes round until that has its answer.
	for {
		select {
		case err := <-w.done:
			return err
		case lane := <-c.lanes:
			// The group is others' as well: it does not end with this caller's call.
			c.commitGroup(context.WithoutCancel(ctx), lane)
		}
	}
}

func (c *Committer[T]) enqueue(w *Waiting[T]) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.closed == nil {
		c.queue = append(c.queue, w)
	}
	return c.closed
}

// Len returns how many changes wait.
func (c *Committer[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.queue)
}

// Bounds of a small change.
const (
	smallBytes  = 64 << 10
	smallEvents = 32
)

func (w *Waiting[T]) small() bool { return w.Bytes <= smallBytes && w.Events <= smallEvents }

// take removes the next group from the queue: the change that has waited
// longest, then the small ones, then what else fits. So a small change waits
// for the group being committed and for one large one at most, however many
// of these there are. No large one waits forever.
func (c *Committer[T]) take() (group []*Waiting[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()

	bytes, events := 0, 0
	for _, small := range []bool{true, false} {
		// It is nil in the end if all are taken, which lets go of the array.
		var rest []*Waiting[T]
		for i, w := range c.queue {
			// The first in the queue goes even if it is too large for any
			// group: otherwise it would wait forever.
			first := small && i == 0
			fits := bytes+w.Bytes <= c.bytesMax && events+w.Events <= c.eventsMax
			if !first && (!fits || small && !w.small()) {
				rest = append(rest, w)
				continue
			}
			group = append(group, w)
			bytes, events = bytes+w.Bytes, events+w.Events
		}
		c.queue = rest
	}

	return group
}

// commitGroup commits the next group and hands the lane on.
func (c *Committer[T]) commitGroup(ctx context.Context, lane int) {
	group := c.take()
	defer func() {
		// They have their answers, unless something panicked.
		for _, w := range group {
			w.Finish(wire.Errorf(wire.CodeInternal,
				"A write that shared this one's transaction failed; send it again."))
		}
		c.lanes <- lane
	}()

	if len(group) > 0 {
		c.commit(ctx, lane, group)
	}
}

// Hold waits until a lane is free and keeps it from committing until release is called.
// ok is false if stop was closed first.
func (c *Committer[T]) Hold(stop <-chan struct{}) (release func(), ok bool) {
	select {
	case <-stop:
		return nil, false
	case lane := <-c.lanes:
		return func() { c.lanes <- lane }, true
	}
}

// Close fails everything that waits, and everything that comes, with err. When it
// returns, no commit runs. It must not be called twice.
func (c *Committer[T]) Close(err error) {
	c.mu.Lock()
	c.closed = err
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()

	for _, w := range queue {
		w.Finish(err)
	}
	// Holding every lane means that no commit runs. They
	// are not given back, so none begins.
	for range cap(c.lanes) {
		<-c.lanes
	}
}
