package queue

import (
	"errors"
	"fmt"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/generation"
)

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
