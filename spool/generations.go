package spool

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"promptspool/spool/generation"
)

// generationState is what the queue knows about one generation.
type generationState struct {
	name  string // its folder in the spool's; restore changes it, with readMu and mu held
	first uint64 // the first sequence that it may hold

	// Guarded by Spool.mu.
	last     uint64 // the last sequence that it holds; first-1 when it is empty
	firstAt  time.Time
	unsealed bool // it is written, or waits to be sealed

	// Owned by the leader while the generation is written.
	writer *generation.Writer // nil once it is sealed
	begun  time.Time          // when it got its place

	// Guarded by Spool.readMu.
	reader *generation.Reader // nil while closed
	proved bool               // its value log was read whole
}

// generationsFrom returns the generations that may hold from or later sequences.
func (s *Spool) generationsFrom(from uint64) []*generationState {
	s.mu.Lock()
	defer s.mu.Unlock()

	i := sort.Search(len(s.generations), func(i int) bool { return s.generations[i].last >= from })
	return slices.Clone(s.generations[i:])
}

func (s *Spool) lastSeq(g *generationState) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.last
}

// readingMax is how many sealed generations are open for reading: one where Read is, and
// one at the frontier, whose keys Ack counts. With a single one the two would close and
// open it in turn, some thirty times for each generation.
const readingMax = 2

// withOpen calls fn with the database of a generation. If the disk fails during the call,
// it rebuilds the generation from what can be read and calls fn again. The caller must
// hold readMu.
func (s *Spool) withOpen(g *generationState, fn func(*generation.Reader) error) error {
	open, err := s.openForReading(g)
	if err == nil {
		if err = fn(open); !errors.Is(err, generation.ErrUnreadable) {
			return err
		}

		if err = s.abandonDatabase(g, err); err == nil {
			open, err = s.openForReading(g)
		}
		if err == nil {
			return fn(open)
		}
	}
	return fmt.Errorf("spool: cannot read %s; restart promptspool to have it examined: %w",
		s.path(g.name), err)
}

// abandonDatabase gives up a database that met a fault without closing it, and rebuilds
// the generation: Badger may hold its own locks, and closing could wait for them forever.
//
// The generation that is written cannot be given up. There the spool fails, and the next
// start must find what is whole. The caller must hold readMu.
func (s *Spool) abandonDatabase(g *generationState, cause error) error {
	i := slices.Index(s.reading, g)
	if i < 0 {
		return s.fail(cause)
	}

	s.reading = slices.Delete(s.reading, i, i+1)
	g.reader, g.proved = nil, false
	return s.restore(g, cause)
}

// openForReading returns the database of a generation. Besides the one that is written,
// the readingMax most recently used ones stay open. The caller must hold readMu.
func (s *Spool) openForReading(g *generationState) (*generation.Reader, error) {
	// The one that is written is not in the list, so it is never closed to make way.
	if g.reader != nil {
		if i := slices.Index(s.reading, g); i >= 0 {
			s.reading = append(slices.Delete(s.reading, i, i+1), g)
		}
		return g.reader, nil
	}

	// The least recently used one makes way.
	if len(s.reading) == readingMax {
		if err := s.closeReading(s.reading[0]); err != nil {
			s.config.Logger.Warn("a generation that was read did not close in order",
				"dir", s.config.Dir, "error", err)
		}
	}

	open, err := s.openProved(g)
	if err != nil {
		// Its files were damaged since the spool was opened. Rebuild it now, instead of
		// leaving its events until the next start.
		if err := s.restore(g, err); err != nil {
			return nil, err
		}
		if open, err = s.openProved(g); err != nil {
			return nil, err
		}
	}

	g.reader, s.reading = open, append(s.reading, g)
	return open, nil
}

// openProved opens a sealed generation after its value log was read whole. That is done
// once: a block that goes bad later is a fault, which withOpen handles. The caller must
// hold readMu.
func (s *Spool) openProved(g *generationState) (*generation.Reader, error) {
	if !g.proved {
		if err := generation.ReadValueLogs(s.path(g.name)); err != nil {
			return nil, err
		}
		g.proved = true
	}

	return generation.Open(s.path(g.name), s.storeLog())
}

// closeReading closes what openForReading opened of a generation, if it is open. The
// caller must hold readMu.
func (s *Spool) closeReading(g *generationState) error {
	i := slices.Index(s.reading, g)
	if i < 0 {
		return nil
	}

	s.reading = slices.Delete(s.reading, i, i+1)
	err := g.reader.Close()
	g.reader = nil
	return err
}

// closeAllReading closes everything that openForReading opened. The caller must hold
// readMu.
func (s *Spool) closeAllReading() error {
	var errs []error
	for len(s.reading) > 0 {
		errs = append(errs, s.closeReading(s.reading[0]))
	}
	return errors.Join(errs...)
}
