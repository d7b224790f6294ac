package queue

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"promptspool/spool/queue/generation"
)

// generationState is what the queue knows about one generation.
type generationState struct {
	name  string // its folder in the spool's; restore changes it, with readMu and mu held
	first uint64 // the first sequence that it may hold

	// Guarded by Queue.mu.
	last     uint64 // the last sequence that it holds; first-1 when it is empty
	firstAt  time.Time
	unsealed bool // it is written, or waits to be sealed

	// Owned by the leader while the generation is written.
	writer *generation.Writer // nil once it is sealed
	begun  time.Time          // when it got its place

	// Guarded by Queue.readMu.
	reader *generation.Reader // nil while closed
	proved bool               // its value log was read whole
}

// generationsFrom returns the generations that may hold from or later sequences.
func (q *Queue) generationsFrom(from uint64) []*generationState {
	q.mu.Lock()
	defer q.mu.Unlock()

	i := sort.Search(len(q.generations), func(i int) bool { return q.generations[i].last >= from })
	return slices.Clone(q.generations[i:])
}

func (q *Queue) lastSeq(g *generationState) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return g.last
}

// readingMax is how many sealed generations are open for reading: one where Read is, and
// one at the frontier, whose keys Ack counts. With a single one the two would close and
// open it in turn, some thirty times for each generation.
const readingMax = 2

// withOpen calls fn with the database of a generation. If the disk fails during the call,
// it rebuilds the generation from what can be read and calls fn again. The caller must
// hold readMu.
func (q *Queue) withOpen(g *generationState, fn func(*generation.Reader) error) error {
	open, err := q.openForReading(g)
	if err == nil {
		err = fn(open)
		if !errors.Is(err, generation.ErrUnreadable) {
			return err
		}

		err = q.abandonDatabase(g, err)
		if err == nil {
			open, err = q.openForReading(g)
		}
		if err == nil {
			return fn(open)
		}
	}
	return fmt.Errorf("spool: cannot read %s; restart promptspool to have it examined: %w",
		q.path(g.name), err)
}

// abandonDatabase gives up a database that met a fault without closing it, and rebuilds
// the generation: Badger may hold its own locks, and closing could wait for them forever.
//
// The generation that is written cannot be given up. There the spool fails, and the next
// start must find what is whole. The caller must hold readMu.
func (q *Queue) abandonDatabase(g *generationState, cause error) error {
	i := slices.Index(q.reading, g)
	if i < 0 {
		return q.fail(cause)
	}

	q.reading = slices.Delete(q.reading, i, i+1)
	g.reader, g.proved = nil, false
	return q.restore(g, cause)
}

// openForReading returns the database of a generation. Besides the one that is written,
// the readingMax most recently used ones stay open. The caller must hold readMu.
func (q *Queue) openForReading(g *generationState) (*generation.Reader, error) {
	// The one that is written is not in the list, so it is never closed to make way.
	if g.reader != nil {
		if i := slices.Index(q.reading, g); i >= 0 {
			q.reading = append(slices.Delete(q.reading, i, i+1), g)
		}
		return g.reader, nil
	}

	// The least recently used one makes way.
	if len(q.reading) == readingMax {
		if err := q.closeReading(q.reading[0]); err != nil {
			q.config.Logger.Warn("a generation that was read did not close in order",
				"dir", q.config.Dir, "error", err)
		}
	}

	open, err := q.openProved(g)
	if err != nil {
		// Its files were damaged since the spool was opened. Rebuild it now, instead of
		// leaving its events until the next start.
		if err := q.restore(g, err); err != nil {
			return nil, err
		}
		open, err = q.openProved(g)
		if err != nil {
			return nil, err
		}
	}

	g.reader, q.reading = open, append(q.reading, g)
	return open, nil
}

// openProved opens a sealed generation after its value log was read whole. That is done
// once: a block that goes bad later is a fault, which withOpen handles. The caller must
// hold readMu.
func (q *Queue) openProved(g *generationState) (*generation.Reader, error) {
	if !g.proved {
		if err := generation.ReadValueLogs(q.path(g.name)); err != nil {
			return nil, err
		}
		g.proved = true
	}

	return generation.Open(q.path(g.name), q.storeLog())
}

// closeReading closes what openForReading opened of a generation, if it is open. The
// caller must hold readMu.
func (q *Queue) closeReading(g *generationState) error {
	i := slices.Index(q.reading, g)
	if i < 0 {
		return nil
	}

	q.reading = slices.Delete(q.reading, i, i+1)
	err := g.reader.Close()
	g.reader = nil
	return err
}

// closeAllReading closes everything that openForReading opened. The caller must hold
// readMu.
func (q *Queue) closeAllReading() error {
	var errs []error
	for len(q.reading) > 0 {
		errs = append(errs, q.closeReading(q.reading[0]))
	}
	return errors.Join(errs...)
}
