package spool

import (
	"context"
	"fmt"
	"slices"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/rawlog"
)

// write is one Append on its way to the disk.
type write struct {
	key    uint32
	events []event
	frames int
	bytes  int64

	lead bool       // it is this writer's turn to commit; under Spool.mu, or after a receive from turn
	turn chan error // gets nil when lead was set later than by enqueue, and the outcome; room for one
}

// event is one event on its way to the disk.
type event struct {
	parts  [][]byte
	bytes  int
	framed bool // parts are frames, with empty headers
}

func newWrite(key uint32, data [][][]byte) (*write, error) {
	w := &write{key: key, events: make([]event, len(data)), frames: len(data), turn: make(chan error, 1)}
	for i, parts := range data {
		bytes := 0
		for _, part := range parts {
			bytes += len(part)
		}
		w.events[i] = event{parts, bytes, false}
		if bytes > framePart {
			w.events[i] = event{spread(parts), bytes, true}
			w.frames += len(w.events[i].parts) - 1
		}
		w.bytes += int64(bytes)
	}
	if w.bytes > appendBytesMax || w.frames > appendFramesMax {
		return nil, fmt.Errorf("spool: %d events of %d bytes do not fit in one commit (at most %d of %d); append fewer at a time",
			len(data), w.bytes, appendFramesMax, appendBytesMax)
	}

	return w, nil
}

// Append stores data, each element one event of this key, in the order given and in one commit: all or none. When it
// returns nil they are fsynced. Appends that come at the same time share a commit and its fsync, for which those of several busy
// writers wait up to 5 ms; one that comes alone commits at once. Together data may hold 36 MiB.
//
// The bytes of data belong to the spool until Append returns: it writes over those of an event larger than 1 MiB. When ctx
// ends while Append waits, it returns ctx.Err(), the bytes stay the spool's, and the outcome is unknown: the events may be,
// or become, durable. The same holds for ErrFailed: the next start may find them. Any other error means that nothing was
// stored.
func (s *Spool) Append(ctx context.Context, key uint32, data ...[]byte) error {
	events := make([][][]byte, len(data))
	for i := range data {
		events[i] = data[i : i+1]
	}

	return s.AppendParts(ctx, key, events...)
}

// AppendParts is Append for events that are each given as parts, which are stored as one.
func (s *Spool) AppendParts(ctx context.Context, key uint32, events ...[][]byte) (err error) {
	start := time.Now()
	defer func() {
		if err == nil {
			s.config.Metrics.SpoolAppendSeconds.Observe(time.Since(start).Seconds())
		}
	}()
	w, err := newWrite(key, events)
	if err != nil || w.frames == 0 {
		return err
	}
	lead, err := s.enqueue(w, start)
	if err != nil {
		return err
	}
	if !lead {
		select {
		case err := <-w.turn:
			if !w.lead {
				return err
			}
		case <-ctx.Done():
			if !s.abandon(w) {
				return ctx.Err()
			}
		}
	}
	s.commitQueue()
	return <-w.turn
}

// enqueue counts w and queues it. It says whether the caller has to commit.
func (s *Spool) enqueue(w *write, at time.Time) (lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return false, err
	}
	s.usage.add(w.key, len(w.events), w.bytes)
	s.queue = append(s.queue, w)
	s.noteArrivalLocked(at)
	if !s.leading {
		s.leading, w.lead = true, true
	}
	return w.lead, nil
}

// abandon takes w out of the queue if it is still there. It says true if w has been told to commit, which it must do.
func (s *Spool) abandon(w *write) (lead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.lead {
		<-w.turn
		return true
	}
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.usage.add(w.key, -len(w.events), -w.bytes)
	}
	return false
}

// commitQueue commits what fits in one transaction, tells the writers, and hands the turn on.
func (s *Spool) commitQueue() {
	s.gather()
	s.mu.Lock()
	batch := s.takeBatchLocked()
	s.commitBegan, s.committing = time.Now(), len(batch)
	seq, at, err := s.next, s.config.Now().UTC(), s.refusalLocked()
	s.mu.Unlock()

	if err == nil {
		err = s.commit(batch, seq, at)
	}
	s.settle(batch, seq, at, err)
	s.handOn()
}

// handOn gives the turn to the first who waits.
func (s *Spool) handOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		s.refuseQueueLocked(err)
	}
	if len(s.queue) > 0 {
		s.queue[0].lead = true
		s.queue[0].turn <- nil
		return
	}
	s.leading = false
	s.idle.Broadcast()
}

// takeBatchLocked takes from the queue what fits in one transaction, at least the one that has the turn. With mu held.
func (s *Spool) takeBatchLocked() []*write {
	var frames, n int
	var bytes int64
	for _, w := range s.queue {
		frames, bytes = frames+w.frames, bytes+w.bytes
		if n > 0 && (frames > appendFramesMax || bytes > commitBytesMax) {
			break
		}
		n++
	}
	batch := slices.Clone(s.queue[:n])
	s.queue = slices.Delete(s.queue, 0, n)
	return batch
}

// commitBytesMax bounds the bytes of a commit that several writers share, so that none waits long for the others.
const commitBytesMax = 8 << 20

// refuseQueueLocked answers everybody in the queue with err, but for the one that has the turn, which stays: it finds out
// itself, and gives the turn back. With mu held.
func (s *Spool) refuseQueueLocked(err error) {
	s.queue = slices.DeleteFunc(s.queue, func(w *write) bool {
		if w.lead {
			return false
		}
		s.usage.add(w.key, -len(w.events), -w.bytes)
		w.turn <- err
		return true
	})
}

// commit makes a batch durable under the sequences from seq on.
func (s *Spool) commit(batch []*write, seq uint64, at time.Time) error {
	var frames int
	var bytes int64
	for _, w := range batch {
		frames, bytes = frames+w.frames, bytes+w.bytes
	}
	if err := s.makeRoom(seq, frames, bytes); err != nil {
		return err
	}
	start, first := time.Now(), seq
	txn := s.writing.db.NewTransaction(true)
	defer txn.Discard()
	defer s.framer.reset()
	events := 0
	for _, w := range batch {
		for _, e := range w.events {
			k := eventKey{seq: seq, parts: 1, key: w.key, bytes: uint32(e.bytes), at: at}
			if err := s.framer.set(txn, k, e); err != nil {
				return err
			}
			seq++
			events++
		}
	}

	CrashPoint(CrashBeforeCommit)
	if err := s.sync(txn); err != nil {
		s.writing.forget(first)
		return err
	}
	CrashPoint(CrashAfterCommit)

	s.config.Metrics.SpoolFsyncSeconds.Observe(time.Since(start).Seconds())
	s.config.Metrics.SpoolCommitEvents.Observe(float64(events))
	s.writing.frames += frames
	s.writing.bytes += bytes
	s.makeSpare()
	return nil
}

// sync commits a transaction, and returns when all of it is on the disk.
func (s *Spool) sync(txn *badger.Txn) error {
	if err := txn.Commit(); err != nil {
		return s.fail(fmt.Errorf("cannot commit to %s: %w", s.path(s.writing.name), err))
	}

	// When the value log cannot be synced, Badger only logs it and calls the commit a success.
	// It has logged before it returned, so the spool has failed by now; see storeLog.
	if err := s.checkFailed(); err != nil {
		return err
	}

	if err := rawlog.Present(s.writing.folder, s.path(s.writing.name)); err != nil {
		return s.stopAccepting(err)
	}
	return nil
}

// settle publishes a committed batch, or takes back what was reserved for a failed one, and tells its writers.
func (s *Spool) settle(batch []*write, seq uint64, at time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.committing = 0
	if err == nil {
		if s.frontier == s.next {
			s.oldestAt = at
		}
		for _, w := range batch {
			s.next += uint64(len(w.events))
			s.appended += w.bytes
		}
		if s.writing.last < s.writing.first {
			s.writing.firstAt = at
		}
		s.writing.last, s.newestAt = s.next-1, at
		close(s.grown)
		s.grown = make(chan struct{})
	}
	for _, w := range batch {
		if err != nil {
			s.usage.add(w.key, -len(w.events), -w.bytes)
		}
		w.events = nil // who is told may be about to give a large one back to the system
		w.turn <- err
	}
}

// makeRoom moves on to a new generation when the one that is written would grow too large, or there is none.
func (s *Spool) makeRoom(seq uint64, frames int, bytes int64) error {
	if s.writing != nil && s.writing.hasRoom(frames, bytes) {
		return nil
	}
	return s.roll(seq, max(s.config.GenerationBytes, bytes+int64(frames)*frameOverheadBytes))
}
