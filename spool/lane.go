package spool

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
)

// Hold copies events to the held lane, because the server rejects their key.
//
// When it returns nil, all of them are fsynced there and may be acknowledged. Holding an
// event twice does nothing. On an error some may be in the lane: hold them again.
// ErrLanesFull means that there is no room, and that the events must stay in the spool.
func (s *Spool) Hold(key uint32, reason string, entries []Entry) error {
	for _, e := range entries {
		if e.Key != key {
			return fmt.Errorf("spool: event %d is of key %d, not %d", e.Seq, e.Key, key)
		}
	}

	return s.move(LaneHeld, reason, entries)
}

// Bury copies an event to the dead letters, because the server rejects its content.
//
// When it returns nil, the event is fsynced there and may be acknowledged. Burying an
// event twice does nothing. ErrLanesFull is as with Hold.
func (s *Spool) Bury(reason string, e Entry) error {
	return s.move(LaneDead, reason, []Entry{e})
}

func (s *Spool) move(lane Lane, reason string, entries []Entry) error {
	err := s.lanes.move(lane, reason, s.config.Now(), entries)

	s.config.Metrics.LanesFull.Set(0)
	if errors.Is(err, ErrLanesFull) {
		s.config.Metrics.LanesFull.Set(1)
	}
	if err != nil {
		return err
	}

	CrashPoint(CrashLaneSynced)
	return nil
}

// Release deletes events from a lane: they were appended again, or a person gave them up.
//
// When it returns nil, they are gone for good, even after a crash. On an error some may
// be gone. Releasing a sequence that is not in the lane succeeds.
func (s *Spool) Release(lane Lane, seqs []uint64) error {
	return s.lanes.release(lane, seqs)
}

// LaneKeys returns, in order, the numbers of the keys that have events in a lane.
func (s *Spool) LaneKeys(lane Lane) []uint32 { return slices.Sorted(maps.Keys(s.lanes.keys(lane))) }

// Lane yields the events of a lane, with one in memory at a time.
//
// It goes file by file, and yields each file as it was when it was opened. The events of
// one move are in order of sequence. An event that cannot be read is yielded as an error,
// with Seq and Key set, and the next one follows. Nothing follows ErrClosed. The loop may
// call Release.
func (s *Spool) Lane(lane Lane) iter.Seq2[LaneEntry, error] {
	return func(yield func(LaneEntry, error) bool) {
		segments, err := s.lanes.segmentsIn(lane)
		if err != nil {
			yield(LaneEntry{}, err)
			return
		}

		// No lock is held here: the loop may call Release, and a file stays readable
		// while it is open, even if it is replaced or removed meanwhile.
		for _, g := range segments {
			if !g.each(yield) {
				return
			}
			if err := s.lanes.stillThere(g); err != nil && !yield(LaneEntry{}, err) {
				return
			}
		}
	}
}

// each yields the events of a segment. It returns false when yield did.
func (g segment) each(yield func(LaneEntry, error) bool) bool {
	file, err := os.Open(g.path)
	if errors.Is(err, os.ErrNotExist) {
		return true // released meanwhile, or lost, which stillThere reports
	}
	if err != nil {
		return yield(LaneEntry{}, err)
	}
	defer file.Close()

	refs, err := segmentRefs(file)
	if err != nil {
		err = fmt.Errorf("spool: %s cannot be read; restart promptspool to have it examined: %w", g.path, err)
		return yield(LaneEntry{}, err)
	}

	for _, ref := range refs {
		event, err := readLaneEvent(file, ref)
		var e LaneEntry
		if err == nil {
			e, err = unwrapLane(event.key, event.wrapped)
		}
		if err != nil {
			e = LaneEntry{Entry: Entry{Seq: ref.key.seq, Key: ref.key.key, At: ref.key.at}}
			err = fmt.Errorf("spool: event %d in the %s lane cannot be read: %w", ref.key.seq, g.lane, err)
		}

		if !yield(e, err) {
			return false
		}
	}
	return true
}
