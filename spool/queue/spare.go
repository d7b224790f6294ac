package queue

import (
	"time"

	"promptspool/spool/queue/generation"
)

// nextName is the folder of a generation that has no place among the others yet.
const nextName = buildPrefix + "next"

// A generation that fills up within spareWithin has the next one made ahead once half of
// it is full, because making one takes longer than many commits. A spare that was not
// used for that long is dropped: it holds disk space that the spool could give back.
const spareWithin = 5 * time.Second

// Where many events wait, a spare is larger than other generations, so that writing moves
// on less often: an eighth of what waits, up to spareGrowth times the usual size.
const (
	spareGrowth = 4
	spareShare  = 8
)

// spare is a generation that is made, or being made, before it is needed. Owned by the
// leader.
type spare struct {
	made   chan struct{}      // closed when writer is set
	writer *generation.Writer // nil if it could not be made; making the next one will report why
	begun  time.Time
}

// makeSpare starts making the next generation, if it will be needed soon and there is
// space for it. Commits continue meanwhile. Only the leader calls it.
func (q *Queue) makeSpare() {
	g, now := q.writing, q.config.Now()
	if !generation.MadeAhead || q.spare != nil || !g.writer.HalfFull() || now.Sub(g.begun) > spareWithin {
		return
	}

	// A spare must never take the last of the disk: it is not needed yet.
	capacity := q.spareCapacity()
	if !q.guard.admitSpare(generation.Space(capacity)) {
		return
	}

	// The leader looks at next.writer only after made is closed.
	next := &spare{made: make(chan struct{}), begun: now}
	q.spare = next
	go func() {
		defer close(next.made)
		w, err := generation.Create(q.path(nextName), 0, capacity, q.storeLog())
		if err == nil {
			next.writer = w
		}
	}()
}

func (q *Queue) spareCapacity() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()

	usual := q.config.GenerationBytes
	return min(max(usual, q.usage.total.bytes/spareShare), spareGrowth*usual)
}

// takeSpare returns the spare generation if it has this capacity or more, and drops a
// smaller one. It returns nil if there is none. Only the leader calls it.
func (q *Queue) takeSpare(capacity int64) *generation.Writer {
	if q.spare == nil {
		return nil
	}

	// One that is being made is waited for: making another would take as long.
	<-q.spare.made
	w := q.spare.writer
	if w == nil || w.Capacity() >= capacity {
		q.spare = nil
		return w
	}

	q.dropSpare()
	return nil
}

// dropOldSpare drops a spare that was not used for a while. Only the leader calls it.
func (q *Queue) dropOldSpare() {
	if q.spare != nil && q.config.Now().Sub(q.spare.begun) > spareWithin {
		q.dropSpare()
	}
}

// dropSpare removes the spare generation, if there is one. Only the leader calls it.
func (q *Queue) dropSpare() {
	if q.spare == nil {
		return
	}

	<-q.spare.made
	// Its name is free again then, for the next one to be made.
	if w := q.spare.writer; w != nil {
		if err := w.Discard(); err != nil {
			q.config.Logger.Warn("a generation that was made ahead cannot be removed; the next start does it",
				"dir", q.config.Dir, "error", err)
		}
	}
	q.spare = nil
}
