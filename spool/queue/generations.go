package queue

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"promptspool/spool/disk"
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

// sealRetryDelay is how long a generation that the disk has no space to seal waits.
const sealRetryDelay = 100 * time.Millisecond

// roll continues in a new generation of this capacity, from seq on. The full one is
// sealed in the background. When roll fails, the full one is still the one that is
// written. Only the leader calls it.
func (q *Queue) roll(seq uint64, capacity int64) error {
	w, err := q.nextGeneration(seq, capacity)
	if err != nil {
		return err
	}

	// At most two generations may be unsealed after a crash, so the last seal has to end
	// first.
	q.waitForSeal()

	name, err := w.Place(seq)
	if err != nil {
		return q.fail(err)
	}
	g := &generationState{
		name:     name,
		first:    seq,
		last:     seq - 1,
		unsealed: true,
		writer:   w,
		begun:    q.config.Now(),
		reader:   w.Reader(),
	}

	// Listed before its first commit: no event may be visible without its generation.
	q.mu.Lock()
	full := q.writing
	q.generations = append(q.generations, g)
	q.writing = g
	q.mu.Unlock()

	if full != nil {
		q.sealInBackground(full)
	}
	return q.checkFailed()
}

// nextName is the folder of a generation that has no place among the others yet.
const nextName = buildPrefix + "next"

// nextGeneration makes a generation that begins with seq.
func (q *Queue) nextGeneration(seq uint64, capacity int64) (*generation.Writer, error) {
	if err := q.guard.admit(generation.Space(capacity)); err != nil {
		return nil, err
	}

	// A full disk is waited for. A broken one ends the spool, because nothing that it
	// says about earlier writes can be trusted either.
	w, err := generation.Create(q.path(nextName), seq, capacity, q.storeLog())
	if disk.IsFull(err) {
		return nil, q.guard.refuse(err)
	}
	if disk.IsBroken(err) {
		return nil, q.fail(err)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: cannot make a new generation: %w", err)
	}

	// Making it may take long, and the disk may have filled up meanwhile.
	if err := q.guard.admit(0); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	return w, nil
}

// sealInBackground seals a full generation while the next one is written.
func (q *Queue) sealInBackground(g *generationState) {
	done := make(chan struct{})
	q.sealing = done

	go func() {
		defer close(done)

		// Without space the generation waits, with all its events readable. Meanwhile the guard
		// refuses to make another one.
		for !q.sealWithRoom(g) {
			select {
			case <-time.After(sealRetryDelay):
			case <-q.closed:
				// It stays as a crash would leave it.
				return
			}
		}
	}()
}

// sealWithRoom seals a generation if the disk has space for its table. It reports whether
// there is nothing left to do: it is sealed, or the spool has failed.
//
// It looks at the disk as late as possible. There was space when the next generation was
// made, but another process may have taken it since.
func (q *Queue) sealWithRoom(g *generationState) bool {
	q.readMu.Lock()
	defer q.readMu.Unlock()

	if q.guard.freeBallast(sealSpace) != nil {
		return false
	}
	if err := q.seal(g); err != nil {
		_ = q.fail(err)
		return true
	}

	// An Ack that came before the seal had to leave the generation in place.
	if err := q.removeAcked(); err != nil {
		q.config.Logger.Warn("a generation that is acknowledged cannot be removed; it is tried again",
			"dir", q.config.Dir, "error", err)
	}

	return true
}

// waitForSeal waits until no generation is being sealed. Only the leader calls it.
func (q *Queue) waitForSeal() {
	if q.sealing != nil {
		<-q.sealing
		q.sealing = nil
	}
}

// seal closes and seals a generation that was written. The caller must hold readMu.
func (q *Queue) seal(g *generationState) error {
	err := g.writer.Close()
	g.writer, g.reader = nil, nil

	q.mu.Lock()
	defer q.mu.Unlock()
	// If it is not sealed, it must stay: the next start examines it.
	g.unsealed = err != nil
	if q.writing == g {
		q.writing = nil
	}
	return err
}

// shrink gives the space of a generation that is larger than usual back to the disk, once
// all of its events are acknowledged.
//
// idleAt is the next sequence as of a while ago: if it is unchanged, the spool is idle.
// When shrink cannot act now, it returns nil and is called again a second later.
func (q *Queue) shrink(idleAt uint64) error {
	q.mu.Lock()
	if q.leading || q.refusalLocked() != nil {
		q.mu.Unlock()
		return nil
	}
	// The rest belongs to the leader.
	q.leading = true
	idle := q.next == idleAt && q.frontier == q.next
	q.mu.Unlock()
	defer q.handOn()

	if !idle || q.writing == nil || q.writing.writer.Capacity() <= q.config.GenerationBytes {
		return nil
	}

	if err := q.roll(idleAt, q.config.GenerationBytes); err != nil {
		// Only a failure matters: without space for a small one, the large one stays for
		// now.
		if errors.Is(err, ErrFailed) {
			return err
		}
		return nil
	}
	// Sealing ends with the removal of the large generation.
	q.waitForSeal()
	return nil
}
