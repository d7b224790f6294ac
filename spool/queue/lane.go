package queue

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"promptspool/spool/crashpoint"
	"promptspool/spool/queue/lane"
)

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
