// Package counting answers statistics in time, and continues counting after its answer.
//
// An answer that would take long has what is counted so far. The count continues for a
// while, for callers that ask the same again, and what is whole is kept for a moment. Few
// count at a time, and none without end, so that questions stay cheap for the Store. For the same reason
// searches through texts wait for their turn (SearchQueue).
package counting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"promptspool/api/admission"
	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/records"
	"promptspool/spool/archive/rowcode"
)

// Bounds of counting that continues after an answer.
const (
	walksMax     = 2                      // at a time, one for each account
	walkFree     = 100 * time.Millisecond // every walk may take this long: most end within it
	walkPatience = records.StatisticsBudget
	walkUnasked  = 10 * time.Second // a walk ends when no caller has asked for it for this long
	walkFreshFor = 10 * time.Second // an answer is kept this long before it is counted again

	// How long a walk rests once a caller leaves with what is counted: what the caller makes of it comes
	// first where processors are few.
	walkRest = 50 * time.Millisecond
)

// Service is a records.Service whose statistics answer within StatisticsQuery.Budget.
//
// Where that is too short to count everything, the answer is what is counted so far, and
// counting continues for callers that ask the same again: the numbers of one question grow
// until they are complete, and do not shrink. Once an answer is whole, later ones are this one
// until a newer count is whole.
//
// It is safe for concurrent use. The caller closes it before the Store.
type Service struct {
	*records.Service

	life  context.Context
	end   context.CancelFunc
	walks sync.WaitGroup

	mu      sync.Mutex
	last    map[countKey]*walk // of the questions that were asked last
	bytes   int                // of what these have
	walking map[string]bool    // accounts with a walk that takes longer than walkFree
}

// New returns a Service over another, which must outlive it.
func New(a *records.Service) *Service {
	life, end := context.WithCancel(context.Background())

	return &Service{
		Service: a,
		life:    life,
		end:     end,
		last:    make(map[countKey]*walk),
		walking: make(map[string]bool),
	}
}

// Close ends all counting and waits for it.
func (c *Service) Close() {
	// No walk begins once life has ended; see walkOf.
	c.mu.Lock()
	c.end()
	c.mu.Unlock()

	c.walks.Wait()
}

// Analyze sums up the records that a search with the same filter finds, within q.Budget.
func (c *Service) Analyze(
	ctx context.Context, id wire.Identity, q wire.StatisticsQuery,
) (w wire.Analytics, err error) {
	// Faults of a filter are reported in one place.
	match, err := query.CompileMatch(q.FilterGroup)
	if err != nil || q.Budget == 0 {
		return c.Service.Analyze(ctx, id, q)
	}

	want := query.AnalyticsColumns
	if q.Brief {
		want = query.BriefColumns
	}
	asked := question{
		key:  countKey{id.Account, "analytics", q.Key},
		want: want,
		sums: func(q wire.StatisticsQuery) (query.Sums, func() any) {
			sums := query.NewAnalytics(q)
			return sums, func() any { return sums.Answer() }
		},
		summed: isSummed(q, match),
	}
	answer, progress, err := c.ask(ctx, id, q, asked)
	w, _ = answer.(wire.Analytics)
	w.Progress = progress

	return w, err
}

// Statistics sums up records by template version or something else, within q.Budget.
func (c *Service) Statistics(
	ctx context.Context, id wire.Identity, q wire.PartsQuery,
) (w wire.Statistics, err error) {
	match, err := query.CompileMatch(q.FilterGroup)
	if err != nil || q.Budget == 0 {
		return c.Service.Statistics(ctx, id, q)
	}

	answer, progress, err := c.ask(ctx, id, q.StatisticsQuery, question{
		key:  countKey{id.Account, "statistics", q.Key},
		want: query.PartsColumns(q),
		sums: func(defined wire.StatisticsQuery) (query.Sums, func() any) {
			q.StatisticsQuery = defined
			sums := query.NewParts(q)
			return sums, func() any { return sums.Answer() }
		},
		summed: q.IsSummed() && isSummed(q.StatisticsQuery, match),
	})
	w, _ = answer.(wire.Statistics)
	w.Progress = progress

	return w, err
}

// isSummed reports whether a store has summaries of what a question finds, with its days.
func isSummed(q wire.StatisticsQuery, match query.Query) bool {
	return match.Spanned() && (q.Zone == "" || q.Zone == time.UTC.String())
}

// question is what a walk counts.
type question struct {
	key    countKey
	want   rowcode.Columns
	summed bool // by summaries of the store, so that it takes no place from other walks

	// sums returns empty sums, and what answers at any time with what they have counted so far.
	sums func(q wire.StatisticsQuery) (sums query.Sums, answer func() any)
}

// ask returns the best answer that exists after q.Budget.
func (c *Service) ask(
	ctx context.Context, id wire.Identity, q wire.StatisticsQuery, asked question,
) (answer any, progress wire.Progress, err error) {
	if err := c.Define(ctx, id, &q); err != nil {
		return nil, progress, err
	}
	w, fresh, err := c.walkOf(id, q, asked)
	if err == nil && !fresh {
		err = w.await(ctx, q.Budget)
	}
	if err != nil {
		return nil, progress, err
	}

	// Making an answer takes a moment, so it happens before the lock.
	part := w.part()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepLocked(w, part)

	// A walk that reached its end while this caller waited has the truth of now.
	if w.err != nil || w.whole && !fresh {
		return w.best.answer, progress, w.err
	}
	progress = w.best.progress
	progress.Counting = !w.isFresh()

	return w.best.answer, progress, nil
}

// walkOf joins the walk that counts the answer to a question, or begins one. It is fresh if it is over,
// and its answer recent enough.
func (c *Service) walkOf(
	id wire.Identity, q wire.StatisticsQuery, asked question,
) (w *walk, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.life.Err() != nil {
		return nil, false, wire.Unavailable(0, "The server is stopping.")
	}

	w = c.last[asked.key]
	fresh = w != nil && w.isFresh()
	switch {
	case w != nil && !w.over:
		// This caller waits for it, so it continues although the
		// one that began it may have left.
		w.unasked.Reset(q.Budget + walkUnasked)
	case !fresh:
		next := c.beginLocked(id, q, asked)
		if w == nil {
			c.bytes += next.bytes
		} else {
			next.best, next.bytes = w.best, w.bytes
		}
		w, c.last[asked.key] = next, next
	}
	w.used = time.Now()
	c.shrinkLocked(w)

	return w, fresh, nil
}

// Bounds of what is kept of answers.
const (
	keptCountsMax = 64
	keptBytesMax  = 8 << 20 // of the answers as JSON
)

// countKey names a question whose answer takes long.
type countKey struct{ account, kind, query string }

// countedPart is an answer that counts some of the rows that a question finds, or all.
type countedPart struct {
	answer   any   // nil: nothing has been counted yet
	steps    int64 // of the walk: further ones have counted more
	progress wire.Progress
}

// keepLocked keeps what is counted so far if it is whole, or more than what is known from an earlier walk.
func (c *Service) keepLocked(w *walk, part countedPart) {
	best := &w.best
	less := best.answer != nil && (!best.progress.Incomplete || part.steps < best.steps)
	if part.answer == nil || part.progress.Incomplete && less {
		return
	}

	*best = part
	bytes := len(w.asked.key.query)
	// A part is replaced soon, and its size takes long to find out.
	if !part.progress.Incomplete {
		text, _ := json.Marshal(part.answer) // answers always encode
		bytes += len(text)
	}
	// Else others have displaced the question: its answer serves those who wait.
	if c.last[w.asked.key] == w {
		c.bytes += bytes - w.bytes
		w.bytes = bytes
		c.shrinkLocked(w)
	}
}

// shrinkLocked drops the questions that were asked least recently, except for one.
func (c *Service) shrinkLocked(but *walk) {
	for len(c.last) > keptCountsMax || c.bytes > keptBytesMax && len(c.last) > 1 {
		var oldest *walk
		for _, w := range c.last {
			if w != but && (oldest == nil || w.used.Before(oldest.used)) {
				oldest = w
			}
		}
		// No caller could join it any more, because it is found by its question.
		oldest.cancel(errWalkUnasked)
		c.bytes -= oldest.bytes
		delete(c.last, oldest.asked.key)
	}
}

// Bounds of searches that wait. An account may have half of them waiting.
const (
	searchesWaitingMax = 1024
	searchPatience     = 25 * time.Second // most callers leave after half a minute
)

// SearchQueue is a Store that answers searches through prompts and responses in turn, a few at a time:
// a query's Budget is for its own work. If all were under way together, it would end while they wait for
// each other, and none would find anything. Accounts take turns.
type SearchQueue struct {
	archive.Store
	queue      *admission.Queue
	retryAfter admission.RetryAfter
}

// NewSearchQueue makes a SearchQueue in front of next.
func NewSearchQueue(next archive.Store) *SearchQueue {
	// Half of those under way may wait for the disk.
	queue := admission.NewQueue(int64(2*runtime.GOMAXPROCS(0)), searchesWaitingMax, nil)
	return &SearchQueue{Store: next, queue: queue}
}

// Search waits for the account's turn, unless rows alone tell what matches.
func (s *SearchQueue) Search(ctx context.Context, account string, q query.Query) (query.Page, error) {
	if q.Budget == 0 {
		return s.Store.Search(ctx, account, q)
	}

	if err := s.queue.Enter(ctx, account, 1, 1, searchPatience); err != nil {
		if ctx.Err() != nil {
			return query.Page{}, admission.EndedError(ctx)
		}
		return query.Page{}, wire.Unavailable(s.retryAfter.Next(), "The server has more searches through prompts "+
			"and responses than it can answer now. Retry after the time in Retry-After.")
	}
	defer s.queue.Leave(1)

	return s.Store.Search(ctx, account, q)
}

// Why a walk ends before it has counted everything.
var (
	errWalkBusy    = errors.New("others are counting")
	errWalkUnasked = errors.New("the count is not asked for anymore")
	errWalkLong    = errors.New("counting takes too long")
)

// walk is one pass over what a question finds, with the best known answer: a whole one until a newer one
// is whole, otherwise the part that counts the most.
type walk struct {
	asked   question
	begun   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	unasked *time.Timer

	done  chan struct{} // closed at the end
	rests atomic.Bool   // a caller has left: see walkRest

	mu      sync.Mutex // held for one row at a time, so that part can answer between two
	sums    query.Sums // nil once it is over
	counted func() any
	steps   int64     // rows and summaries so far
	at      time.Time // list time of the last row

	// Guarded by Service.mu.
	placed bool // it has one of the places in Service.walking
	over   bool
	whole  bool
	err    error // if it failed
	best   countedPart
	bytes  int       // of best
	ended  time.Time // if it came as far as any would
	used   time.Time
}

// isFresh reports whether the answer will do without another walk. Service.mu must be held.
func (w *walk) isFresh() bool { return w.over && time.Since(w.ended) < walkFreshFor }

// beginLocked begins a walk. Service.mu must be held.
func (c *Service) beginLocked(id wire.Identity, q wire.StatisticsQuery, asked question) *walk {
	w := &walk{
		asked: asked,
		begun: time.Now(),
		done:  make(chan struct{}),
		bytes: len(asked.key.query),
	}
	w.sums, w.counted = asked.sums(q)
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
	w.mu.Lock()
	// They may be large.
	w.sums, w.counted = nil, nil
	w.mu.Unlock()

	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(w.done)

	w.over = true
	if w.placed {
		delete(c.walking, w.asked.key.account)
	}

	cause := context.Cause(w.ctx)
	// A walk that we ended has not failed: what it counted so far is an answer.
	ended := slices.Contains([]error{errWalkBusy, errWalkUnasked, errWalkLong}, cause)
	switch {
	case err != nil && !ended:
		w.err = err
		return
	case err == nil && progress.Incomplete:
		part.progress = progress
	case err == nil:
		w.whole, part.progress = true, wire.Progress{AsOf: time.Now()}
	}
	c.keepLocked(w, part)

	// Another walk would come no further than one that took too long, and is not worth it
	// soon after one that took a while. A quick count is repeated each time; its answer
	// is kept for when the machine is busier.
	if err == nil && time.Since(w.begun) > walkFree || cause == errWalkLong {
		w.ended = time.Now()
	}
}

// rest makes way for callers that have their answer.
func (w *walk) rest() {
	if w.rests.Load() && w.rests.Swap(false) {
		time.Sleep(walkRest)
	}
}

// Add counts a row.
func (w *walk) Add(row *wire.Row) error {
	w.rest()
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
	w.sums.Reach(at)
}

// Remove takes back a row that a summary counts.
func (w *walk) Remove(row *wire.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums.Remove(row)
}

// Merge counts the rows of a summary, if it takes any.
func (w *walk) Merge(summary []byte, exact bool) (bool, error) {
	w.rest()
	w.mu.Lock()
	defer w.mu.Unlock()

	merged, err := w.sums.Merge(summary, exact)
	if merged {
		w.steps++
		w.at = query.SummarySince(summary)
	}

	return merged, cmp.Or(err, w.ctx.Err())
}

// part returns what is counted so far; nothing once the walk is over.
func (w *walk) part() (part countedPart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sums == nil {
		return part
	}

	return countedPart{w.counted(), w.steps, wire.Progress{Incomplete: true, Since: w.at}}
}

// await waits until a walk is over or the budget is spent.
func (w *walk) await(ctx context.Context, budget time.Duration) error {
	timer := time.NewTimer(budget)
	defer timer.Stop()

	select {
	case <-w.done:
	// Not an error: the caller answers with what is counted by now.
	case <-timer.C:
		w.rests.Store(true)
	case <-ctx.Done():
		return wire.Unavailable(0, "The request ended before it had its answer: %w", ctx.Err())
	}

	return nil
}
