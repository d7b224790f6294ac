package queue

import (
	"fmt"
	"slices"
	"time"

	"promptspool/spool/crashpoint"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
)

// commitBytesMax bounds the bytes of a commit that several writers share, so that none of
// them waits long for the others.
const commitBytesMax = 8 << 20

// write is one Append on its way to the disk.
type write struct {
	key    uint32
	events []generation.Event
	first  [1]generation.Event // the memory of events, which mostly come one by one
	frames int
	bytes  int64

	// lead reports that this writer must commit. Read it under Queue.mu or after
	// receiving from turn.
	lead bool
	// turn receives nil when this writer is made the leader after it was queued, and then
	// the outcome of its commit. It has space for one value, so the sender never waits.
	turn chan error
}

// newWrite sizes the events, and prepares the large ones in place. It takes over the
// bytes of data.
func newWrite(key uint32, data [][][]byte) (*write, error) {
	w := &write{key: key, turn: make(chan error, 1)}
	w.events = w.first[:]
	if len(data) != 1 {
		w.events = make([]generation.Event, len(data))
	}

	for i, parts := range data {
		w.events[i] = generation.NewEvent(parts)
		w.frames += w.events[i].Frames()
		w.bytes += int64(w.events[i].Bytes())
	}

	// Refused before it is queued: a leader could neither split it nor commit it with
	// others.
	if w.bytes > generation.CommitBytesMax || w.frames > generation.CommitFramesMax {
		return nil, fmt.Errorf("spool: %d events of %d bytes do not fit in one commit (at most %d of %d); "+
			"append fewer at a time",
			len(data), w.bytes, generation.CommitFramesMax, generation.CommitBytesMax)
	}

	return w, nil
}

// Append stores data durably, each element as one event of this key, in the order given.
//
// Durability: all events are in one commit, so either all are stored or none. When Append
// returns nil, they are fsynced. Appends that arrive together share a commit and its
// fsync.
//
// Ownership: the bytes of data belong to the spool until Append returns, and it
// overwrites those of an event larger than 1 MiB. Together, data may hold 36 MiB.
//
// Errors: after ErrFailed the spool keeps the bytes, and the outcome is unknown: the next
// start may find the events. Any other error means that nothing was stored.
func (q *Queue) Append(key uint32, data ...[]byte) error {
	events := make([][][]byte, len(data))
	for i := range data {
		events[i] = data[i : i+1]
	}

	return q.AppendParts(key, events...)
}

// AppendParts is Append for events that are each given in parts, which are stored as one.
func (q *Queue) AppendParts(key uint32, events ...[][]byte) (err error) {
	start := time.Now()
	defer func() {
		if err == nil {
			q.config.Metrics.SpoolAppendSeconds.Observe(time.Since(start).Seconds())
		}
	}()

	w, err := newWrite(key, events)
	if err != nil || w.frames == 0 {
		return err
	}

	lead, err := q.enqueue(w)
	if err != nil {
		return err
	}

	// One writer, the leader, commits for everyone waiting. The others are either
	// answered by it or, if its batch was full, one of them is made the next leader.
	if !lead {
		err := <-w.turn
		if !w.lead {
			// It was committed, or refused, by another leader.
			return err
		}
	}

	q.commitQueue()

	return <-w.turn
}

// enqueue counts and queues w. It reports whether the caller must commit.
func (q *Queue) enqueue(w *write) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if err := q.refusalLocked(); err != nil {
		return false, err
	}

	// Events count from here on, so that a bound on a key's events holds while they are
	// queued.
	q.usage.Add(w.key, len(w.events), w.bytes)
	q.queue = append(q.queue, w)

	if !q.leading {
		q.leading, w.lead = true, true
	}
	return w.lead, nil
}

// commitQueue commits what fits in one transaction, answers its writers, and passes the
// lead on. Only the leader calls it.
func (q *Queue) commitQueue() {
	q.mu.Lock()
	batch := q.takeBatchLocked()
	q.committing = len(batch)
	seq, at, err := q.next, q.config.Now().UTC(), q.refusalLocked()
	q.mu.Unlock()

	// No lock is held during the fsync, so that Status, Read and new appends do not wait
	// for the disk. Sequences are safe: only the leader advances next, in settle.
	if err == nil {
		err = q.commit(batch, seq, at)
	}

	q.settle(batch, at, err)
	q.handOn()
}

// handOn makes the first writer in the queue the next leader, if there is one.
func (q *Queue) handOn() {
	q.mu.Lock()
	defer q.mu.Unlock()

	// After Close or a failure, no caller may be left waiting for a commit that never
	// comes.
	if err := q.refusalLocked(); err != nil {
		q.refuseQueueLocked(err)
	}

	if len(q.queue) > 0 {
		q.queue[0].lead = true
		q.queue[0].turn <- nil
		return
	}

	q.leading = false
	q.idle.Broadcast()
}

// takeBatchLocked removes from the queue what fits in one transaction, and at least the
// leader's own write, which is the first.
func (q *Queue) takeBatchLocked() []*write {
	var frames, n int
	var bytes int64
	for _, w := range q.queue {
		frames, bytes = frames+w.frames, bytes+w.bytes
		if n > 0 && (frames > generation.CommitFramesMax || bytes > commitBytesMax) {
			break
		}
		n++
	}

	// A copy, because writers that arrive during the commit reuse the queue's array.
	batch := slices.Clone(q.queue[:n])
	q.queue = slices.Delete(q.queue, 0, n)
	return batch
}

// refuseQueueLocked answers every queued writer with err, except the leader. The leader
// stays in the queue: it finds out by itself, and passes the lead on.
func (q *Queue) refuseQueueLocked(err error) {
	q.queue = slices.DeleteFunc(q.queue, func(w *write) bool {
		if w.lead {
			return false
		}

		q.usage.Add(w.key, -len(w.events), -w.bytes)
		w.turn <- err
		return true
	})
}

// commit makes a batch durable under the sequences from seq on.
func (q *Queue) commit(batch []*write, seq uint64, at time.Time) error {
	var frames int
	var bytes int64
	for _, w := range batch {
		frames, bytes = frames+w.frames, bytes+w.bytes
	}

	// One commit is in one generation as a whole, so space is made before its transaction
	// begins.
	if err := q.makeSpace(seq, frames, bytes); err != nil {
		return err
	}

	start := time.Now()
	txn := q.writing.writer.Begin()
	defer txn.Discard()

	events := 0
	for _, w := range batch {
		for _, e := range w.events {
			if err := txn.Add(frame.EventKey{Seq: seq, Key: w.key, At: at}, e); err != nil {
				return err
			}
			seq++
			events++
		}
	}

	crashpoint.Reach(crashpoint.BeforeCommit)
	if err := q.sync(&txn); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.AfterCommit)

	q.config.Metrics.SpoolFsyncSeconds.Observe(time.Since(start).Seconds())
	q.config.Metrics.SpoolCommitEvents.Observe(float64(events))
	return nil
}

// sync commits a transaction and returns when all of it is on the disk.
func (q *Queue) sync(txn *generation.Transaction) error {
	if err := txn.Commit(); err != nil {
		return q.fail(fmt.Errorf("cannot commit to %s: %w", q.path(q.writing.name), err))
	}

	// When Badger cannot sync the value log, it only logs that and reports a successful
	// commit. It logs before it returns, so the spool has failed by now; see generation.Log.
	if err := q.checkFailed(); err != nil {
		return err
	}

	// On a file system that was made read-only, or in a folder that was removed, the
	// fsync above succeeds without writing anything that the next start would find.
	if err := q.writing.writer.Present(); err != nil {
		return q.stopAccepting(err)
	}
	return nil
}

// settle publishes a committed batch, or takes back what was reserved for a failed one,
// and answers its writers.
func (q *Queue) settle(batch []*write, at time.Time, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()

	// The events are durable. Now readers may see them, before the writers are answered.
	q.committing = 0
	if err == nil {
		if q.frontier == q.next {
			q.oldestAt = at
		}
		for _, w := range batch {
			q.next += uint64(len(w.events))
			q.appended += w.bytes
		}

		if q.writing.last < q.writing.first {
			q.writing.firstAt = at
		}
		q.writing.last, q.newestAt = q.next-1, at

		// Wakes every Wait.
		close(q.grown)
		q.grown = make(chan struct{})
	}

	for _, w := range batch {
		if err != nil {
			q.usage.Add(w.key, -len(w.events), -w.bytes)
		}
		// Once answered, the writer may give a large event back to the system.
		clear(w.events)
		w.turn <- err
	}
}

// makeSpace starts a new generation when there is none, or when the current one would grow
// too large.
func (q *Queue) makeSpace(seq uint64, frames int, bytes int64) error {
	if q.writing != nil && q.writing.writer.HasSpace(frames, bytes) {
		return nil
	}

	return q.roll(seq, max(q.config.GenerationBytes, generation.CapacityFor(frames, bytes)))
}
