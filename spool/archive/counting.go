package archive

import (
	"context"
	"sync"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Bounds of counting behind answers.
const (
	walksMax     = 2                      // at a time, and one of each account
	walkFree     = 100 * time.Millisecond // every walk may take so long, for most are done by then
	walkPatience = statisticsBudget
	walkUnasked  = 10 * time.Second // a walk ends when nobody has asked for it for so long
	walkFreshFor = 10 * time.Second // an answer is kept for so long before it is counted anew
)

// Counting is an Archive whose statistics come within StatisticsQuery.Budget. Where that is too short to count everything, the
// answer tells what is counted so far, and counting goes on for whoever asks the same again: the numbers of one question grow
// until they are complete, and do not shrink. Statistics without a filter but time have no budget; they are always exact.
// Safe for concurrent use. The caller closes it before the Store.
type Counting struct {
	*Archive

	life  context.Context
	end   context.CancelFunc
	walks sync.WaitGroup

	mu      sync.Mutex
	kept    keptCounts
	walking map[string]bool // accounts that have a walk beyond walkFree
}

// NewCounting makes a Counting.
func NewCounting(a *Archive) *Counting {
	life, end := context.WithCancel(context.Background())

	return &Counting{
		Archive: a,
		life:    life,
		end:     end,
		kept:    keptCounts{by: make(map[countKey]*keptCount)},
		walking: make(map[string]bool),
	}
}

// Close ends all counting and waits for it.
func (c *Counting) Close() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()

	c.walks.Wait()
}

// Analyze sums up the records that a search with the same filter finds, within q.Budget if there is a filter.
func (c *Counting) Analyze(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (w wire.Analytics, err error) {
	match, err := query.CompileMatch(q.FilterGroup, q.Q)
	if err != nil || match.Spanned() || q.Budget == 0 {
		return c.Archive.Analyze(ctx, id, q)
	}

	progress, err := c.ask(ctx, id, q, question{
		key:  countKey{id.Account, "analytics", q.Key},
		want: query.AnalyticsColumns,
		sums: func() counter { return counterOf[wire.Analytics]{query.NewAnalytics(q)} },
	}, func(answer any) { w = answer.(wire.Analytics) })
	w.Progress = progress

	return w, err
}

// TemplateStatistics sums up records by template version, within q.Budget.
func (c *Counting) TemplateStatistics(ctx context.Context, id wire.Identity, q wire.StatisticsQuery) (w wire.TemplateStatistics, err error) {
	if q.Budget == 0 {
		return c.Archive.TemplateStatistics(ctx, id, q)
	}

	progress, err := c.ask(ctx, id, q, question{
		key:  countKey{id.Account, "versions", q.Key},
		want: query.TemplateVersionsColumns,
		sums: func() counter { return counterOf[wire.TemplateStatistics]{query.NewTemplateVersions(q)} },
	}, func(answer any) { w = answer.(wire.TemplateStatistics) })
	w.Progress = progress

	return w, err
}

// question is what a walk counts.
type question struct {
	key  countKey
	want rowcode.Columns
	sums func() counter
}

// counter is an adder that tells what it has counted, also in the midst of it.
type counter interface {
	adder
	counted() any
}

type counterOf[T any] struct {
	sums interface {
		adder
		Answer() T
	}
}

func (c counterOf[T]) Add(row *wire.Row) error { return c.sums.Add(row) }
func (c counterOf[T]) counted() any            { return c.sums.Answer() }

// ask hands on the best answer that there is after q.Budget.
func (c *Counting) ask(ctx context.Context, id wire.Identity, q wire.StatisticsQuery, what question, take func(answer any)) (wire.Progress, error) {
	w, err := c.walkOf(id, q, what)
	if err != nil {
		return wire.Progress{}, err
	}

	if w != nil {
		if err := w.await(ctx, q.Budget); err != nil {
			return wire.Progress{}, err
		}
	}

	var part countedPart
	if w != nil && !w.isOver() {
		part = w.part() // before the lock, for it takes a moment
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	// A walk that reached its end tells what is true now, whatever was kept of earlier ones.
	if w != nil && w.over && (w.whole || w.err != nil) {
		if w.err == nil {
			take(w.answer)
		}
		return wire.Progress{}, w.err
	}

	k := c.kept.touch(what.key)
	if part.answer != nil && k.walk == w {
		c.kept.keepPart(what.key, k, part)
	}
	if k.answer == nil { // others have crowded it out
		take(what.sums().counted())
		return wire.Progress{Incomplete: true, Counting: true}, nil
	}

	progress := k.progress
	progress.Counting = !k.fresh()
	take(k.answer)

	return progress, nil
}

// walkOf joins the walk that counts the answer to a question, or begins one. It returns nil if the kept answer will do.
func (c *Counting) walkOf(id wire.Identity, q wire.StatisticsQuery, what question) (*walk, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.life.Err() != nil {
		return nil, wire.Unavailable(0, "The server is stopping.")
	}

	k := c.kept.touch(what.key)
	if k.walk != nil {
		k.walk.unasked.Reset(q.Budget + walkUnasked)
		return k.walk, nil
	}
	if k.answer != nil && k.fresh() {
		return nil, nil
	}

	k.walk = c.beginLocked(id, q, what)

	return k.walk, nil
}
