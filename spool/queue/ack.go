package queue

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"promptspool/spool/crashpoint"
	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/queue/generation"
	"promptspool/spool/queue/lane"
)

// trashPrefix marks what is being removed, buildPrefix what is not finished. Open removes
// both.
const (
	trashPrefix = ".trash-"
	buildPrefix = ".build-"
)

// Frontier returns the lowest sequence that is not acknowledged: after a start, Read from
// here.
func (q *Queue) Frontier() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.frontier
}

// Ack notes that every event with Seq <= through was delivered, or moved to a lane.
//
// Their disk space comes back generation by generation. Lost events right after through
// are passed over as well, because no call will ever acknowledge them. Acknowledging an
// event again does nothing.
//
// Durability: Run makes the frontier durable within a second, and Close does. After a
// crash it may be further back, so that events are sent again, but never further ahead.
//
// An error means that a generation could not be read, and the frontier has not moved, or
// that one could not be removed.
func (q *Queue) Ack(through uint64) error {
	q.readMu.Lock()
	defer q.readMu.Unlock()

	q.mu.Lock()
	frontier, next, closing := q.frontier, q.next, q.closing
	behind := q.afterLostLocked(max(through+1, frontier)) - 1
	q.mu.Unlock()

	if closing {
		return ErrClosed
	}
	if through >= next {
		return fmt.Errorf("spool: cannot acknowledge event %d, the last one is %d", through, next-1)
	}
	through = behind
	if through < frontier {
		return nil
	}

	// Appends continue while this reads. The frontier stays: readMu keeps other calls of
	// Ack out.
	acked, oldestAt, err := q.count(frontier, through)
	if err != nil {
		return err
	}

	q.mu.Lock()
	q.usage.AddAll(acked, -1)
	q.frontier = through + 1
	if q.frontier == q.next && len(q.queue)+q.committing == 0 {
		// Nothing waits, so the usage is zero. The subtraction may say otherwise: events
		// that a generation lost since the spool was opened were counted by keys that are
		// gone now.
		q.usage = frame.Usage{}
	}
	if oldestAt.IsZero() && q.frontier < q.next {
		// It was committed during count.
		oldestAt = q.newestAt
	}
	q.oldestAt = oldestAt
	q.mu.Unlock()

	return q.removeAcked()
}

// count adds up the events from <= sequence <= through, and returns the time of the first
// one that follows, or zero if there is none. It reads keys only. The caller must hold
// readMu.
func (q *Queue) count(from, through uint64) (frame.Usage, time.Time, error) {
	var u frame.Usage
	var following time.Time
	for _, g := range q.generationsFrom(from) {
		if g.first > through {
			q.mu.Lock()
			following = g.firstAt
			q.mu.Unlock()
			break
		}

		// Counted apart and added afterwards, because withOpen may call the function
		// twice.
		var part frame.Usage
		err := q.withOpen(g, func(r *generation.Reader) error {
			part, following = frame.Usage{}, time.Time{}
			return r.Walk(from, func(k frame.EventKey) bool {
				if k.Seq > through {
					following = k.At
					return false
				}
				part.Add(k.Key, 1, int64(k.Bytes))
				return true
			})
		})
		if err != nil {
			return u, following, err
		}

		u.AddAll(part, 1)
		if !following.IsZero() {
			break
		}
	}
	return u, following, nil
}

// removeAcked removes the folders of generations that are acknowledged as a whole.
//
// The newest one always stays: its name keeps sequences from being given out twice,
// should the cursor be lost. One that is not sealed yet stays until it is. The caller
// must hold readMu.
func (q *Queue) removeAcked() error {
	q.mu.Lock()
	n := 0
	for n+1 < len(q.generations) && q.generations[n].last < q.frontier && !q.generations[n].unsealed {
		n++
	}
	acked := q.generations[:n:n]
	state := [2]uint64{q.frontier, q.next}
	q.mu.Unlock()
	if n == 0 {
		return nil
	}

	// The cursor goes first. If it still named removed events as waiting after a crash,
	// the next start would report them as lost.
	if err := q.cursor.Save(state); err != nil {
		return fmt.Errorf("spool: cannot write %s: %w", q.path(cursorName), err)
	}

	q.mu.Lock()
	q.generations = q.generations[n:]
	q.mu.Unlock()

	var errs []error
	for _, g := range acked {
		errs = append(errs, q.closeReading(g))
		if q.raw.generation == g {
			q.raw = rawFiles{}
		}
		errs = append(errs, q.trash(g.name))
	}
	return errors.Join(errs...)
}

// trash removes a folder of the spool. It first renames it to a name that Open ignores,
// so that a crash never leaves half a database.
func (q *Queue) trash(name string) error {
	trash := q.path(trashPrefix + name)
	if err := disk.RemoveAll(trash); err != nil {
		return err
	}
	if err := disk.Rename(q.path(name), trash); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.GenerationRenamed)

	return disk.RemoveAll(trash)
}

// Lane is a place for events that cannot be delivered and must not hold up the others.
type Lane = lane.Lane

// LaneEntry is an event in a lane, with why and when it was moved there.
type LaneEntry = lane.Entry

// The lanes.
const (
	LaneHeld = lane.Held // events of a key that the server rejects
	LaneDead = lane.Dead // events that the server rejects for their content
)

// ErrLanesFull means that the lanes, or the disk under them, have no space for more.
//
// Events that were not moved stay in the spool. Replay or purge what is in the lanes, or
// raise --spool-bytes-max.
var ErrLanesFull = lane.ErrFull

// ParseLane returns the lane of this name.
func ParseLane(name string) (Lane, error) { return lane.Parse(name) }

// Hold copies events to the held lane, because the server rejects their key.
//
// When it returns nil, all of them are fsynced there and may be acknowledged. Holding an
// event twice does nothing. On an error some may be in the lane: hold them again.
// ErrLanesFull means that the lanes have no space, and that the events must stay in the
// spool.
func (q *Queue) Hold(key uint32, reason string, entries []Entry) error {
	held := make([]LaneEntry, 0, len(entries))
	for _, e := range entries {
		if e.Key != key {
			return fmt.Errorf("spool: event %d is of key %d, not %d", e.Seq, e.Key, key)
		}
		held = append(held, LaneEntry{Entry: e, Reason: reason})
	}

	return q.move(LaneHeld, held)
}

// Bury copies events of one key to the dead letters, each with the reason why the server
// rejects it.
//
// When it returns nil, all of them are fsynced there and may be acknowledged. Burying an
// event twice does nothing. ErrLanesFull is as with Hold.
//
// Letters whose record is at a limit come without others. They may take a sixteenth of the
// lanes for each key. Beyond it, and where anything else needs the space, the oldest of them are
// dropped and counted (Status.Dropped).
func (q *Queue) Bury(letters ...LaneEntry) error { return q.move(LaneDead, letters) }

func (q *Queue) move(lane Lane, entries []LaneEntry) error {
	err := q.lanes.Move(lane, q.config.Now(), entries)

	// A gauge of the last move: it falls again with the first one that finds space. Letters of
	// limits make theirs, and say nothing of it.
	switch {
	case errors.Is(err, ErrLanesFull):
		q.config.Metrics.LanesFull.Set(1)
	case len(entries) > 0 && !entries[0].AtLimit:
		q.config.Metrics.LanesFull.Set(0)
	}
	if err != nil {
		return err
	}

	crashpoint.Reach(crashpoint.LaneSynced)
	return nil
}

// Release deletes events from a lane: they were appended again, or a person gave them up.
//
// When it returns nil, they are gone for good, even after a crash. On an error some may
// be gone. Releasing a sequence that is not in the lane succeeds.
func (q *Queue) Release(lane Lane, seqs []uint64) error {
	return q.lanes.Release(lane, seqs)
}

// LaneKeys returns, in order, the numbers of the keys that have events in a lane.
func (q *Queue) LaneKeys(lane Lane) []uint32 { return slices.Sorted(maps.Keys(q.lanes.Keys(lane))) }

// Lane yields the events of a lane, with one in memory at a time.
//
// It goes file by file, and yields each file as it was when it was opened. The events of
// one move are in order of sequence. An event that cannot be read is yielded as an error,
// with Seq and Key set, and the next one follows. Nothing follows ErrClosed. The loop may
// call Release.
func (q *Queue) Lane(lane Lane) iter.Seq2[LaneEntry, error] { return q.lanes.All(lane) }

// Lane yields the events of a lane, as Queue.Lane does.
//
// From a damaged file, which Open would set aside, it yields the events that are whole,
// and then an error with Seq 0.
func (f *Folder) Lane(lane Lane) iter.Seq2[LaneEntry, error] { return f.lanes.All(lane) }
