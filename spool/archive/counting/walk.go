package counting

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
)

// Why a walk ends before it has counted everything.
var (
	errWalkBusy    = errors.New("others are counting")
	errWalkUnasked = errors.New("the count is not asked for anymore")
	errWalkLong    = errors.New("counting takes too long")
)

// walk is one pass over what a question finds.
type walk struct {
	asked   question
	begun   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unasked *time.Timer

	done chan struct{} // closed at the end

	mu      sync.Mutex // held for one row at a time, so that part can answer between two
	sums    records.Adder
	counted func() any
	merger  query.Sums // the same, if it takes summaries; else nil
	steps   int64      // rows and summaries so far
	at      time.Time  // list time of the last row

	// Guarded by Service.mu.
	placed bool // it has one of the places in Service.walking
	over   bool
	whole  bool
	answer any   // if whole
	err    error // if it failed
}

// beginLocked begins a walk. Service.mu must be held.
func (c *Service) beginLocked(id wire.Identity, q wire.StatisticsQuery, asked question) *walk {
	w := &walk{
		asked: asked,
		begun: time.Now(),
		done:  make(chan struct{}),
	}
	w.sums, w.counted = asked.sums(q)
	w.merger, _ = w.sums.(query.Sums)
	// Not the caller's context: others may join the walk, and the caller may ask again.
	w.ctx, w.cancel = context.WithCancelCause(c.life)
	w.unasked = time.AfterFunc(q.Budget+walkUnasked, func() { w.cancel(errWalkUnasked) })

	place := time.AfterFunc(walkFree, func() {
		if !asked.summed {
			c.place(w)
		}
	})
	long := time.AfterFunc(walkPatience, func() { w.cancel(errWalkLong) })

	c.walks.Go(func() {
		progress, err := c.Sum(w.ctx, id, q, asked.want, w)
		for _, timer := range []*time.Timer{w.unasked, place, long} {
			timer.Stop()
		}
		c.finish(w, progress, err)
		w.cancel(nil)
	})

	return w
}

// place gives a walk that takes longer than most one of the few places for these, or ends
// it. Its count so far is kept, and the next caller begins another walk: one that waited
// for its turn would hold a snapshot of the store meanwhile.
func (c *Service) place(w *walk) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if w.over {
		return
	}

	// Few at a time, and one for each account: no account's questions keep the others
	// from theirs.
	account := w.asked.key.account
	if len(c.walking) >= walksMax || c.walking[account] {
		w.cancel(errWalkBusy)
		return
	}

	w.placed = true
	c.walking[account] = true
}

// finish keeps what a walk has counted.
func (c *Service) finish(w *walk, progress wire.Progress, err error) {
	part := w.part()

	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(w.done)

	w.over = true
	if w.placed {
		delete(c.walking, w.asked.key.account)
	}

	k := c.kept.by[w.asked.key]
	if k == nil || k.walk != w {
		// The question was dropped meanwhile.
		k = &keptCount{}
	}
	k.walk = nil
	cause := context.Cause(w.ctx)
	// A walk that we ended has not failed: what it counted so far is an answer.
	ended := slices.Contains([]error{errWalkBusy, errWalkUnasked, errWalkLong}, cause)
	switch {
	case err != nil && !ended:
		w.err = err
	case err != nil:
		c.kept.keepPart(w.asked.key, k, part)
	case progress.Incomplete:
		part.progress = progress
		c.kept.keepPart(w.asked.key, k, part)
	default:
		part.progress = wire.Progress{AsOf: time.Now()}
		w.whole, w.answer = true, part.answer
		c.kept.keep(w.asked.key, k, part)
	}

	// Another walk would come no further than one that took too long, and is not worth it
	// soon after one that took a while. A quick count is repeated each time; its answer
	// is kept for when the machine is busier.
	k.ended = time.Time{}
	if err == nil && time.Since(w.begun) > walkFree || cause == errWalkLong {
		k.ended = time.Now()
	}
}

// Add counts a row.
func (w *walk) Add(row *wire.Row) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.steps++
	w.at = row.ListTime
	if err := w.sums.Add(row); err != nil {
		return err
	}

	// A store checks the context only now and then, and rows may come faster than that.
	return w.ctx.Err()
}

// Reach, Remove and Merge are those of query.Sums.

// Reach passes on that a row with this list time follows.
func (w *walk) Reach(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.merger != nil {
		w.merger.Reach(at)
	}
}

// Remove takes back a row that a summary counts.
func (w *walk) Remove(row *wire.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.merger.Remove(row)
}

// Merge counts the rows of a summary, if it takes any.
func (w *walk) Merge(summary []byte, exact bool) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.merger == nil {
		return false, nil
	}

	merged, err := w.merger.Merge(summary, exact)
	if merged {
		w.steps++
		w.at = query.SummarySince(summary)
	}

	return merged, cmp.Or(err, w.ctx.Err())
}

// part returns what is counted so far.
func (w *walk) part() countedPart {
	w.mu.Lock()
	defer w.mu.Unlock()

	return countedPart{w.counted(), w.steps, wire.Progress{Incomplete: true, Since: w.at}}
}

// isOver reports whether the walk has ended.
func (w *walk) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// await waits until a walk is over or the budget is spent.
func (w *walk) await(ctx context.Context, budget time.Duration) error {
	timer := time.NewTimer(budget)
	defer timer.Stop()

	select {
	case <-w.done:
	// Not an error: the caller answers with what is counted by now.
	case <-timer.C:
	case <-ctx.Done():
		return wire.Unavailable(0, "The request ended before it had its answer: %w", ctx.Err())
	}

	return nil
}
