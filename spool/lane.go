package spool

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
)

// Hold copies events of a key that the server refuses to the held lane. When it returns nil all of them are fsynced there, and may
// be acknowledged. To hold an event twice does nothing. On an error some may be in the lane; hold them again. ErrLanesFull says
// that there is no room: the events must stay in the spool.
func (s *Spool) Hold(key uint32, reason string, entries []Entry) error {
	for _, e := range entries {
		if e.Key != key {
			return fmt.Errorf("spool: event %d is of key %d, not %d", e.Seq, e.Key, key)
		}
	}
	return s.move(LaneHeld, reason, entries)
}

// Bury copies an event that the server refuses for its content to the dead letters. When it returns nil the event is
// fsynced there, and may be acknowledged. To bury an event twice does nothing. ErrLanesFull is as with Hold.
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

// Release removes events from a lane, by their sequence there: they were appended again, or a person gave them up. When it
// returns nil they are gone for good, also after a crash; on an error some may be. A sequence that is not there is nothing.
func (s *Spool) Release(lane Lane, seqs []uint64) error {
	return s.lanes.release(lane, seqs)
}

// LaneKeys are the numbers of the keys whose events lie in a lane, in order.
func (s *Spool) LaneKeys(lane Lane) []uint32 { return slices.Sorted(maps.Keys(s.lanes.keys(lane))) }

// Lane yields the events of a lane, one in memory at a time: file by file, each as it was when it was opened, in order of
// sequence within what was moved at once. What cannot be read is yielded as an error, with Seq and Key set, and the next
// one follows. After ErrClosed nothing follows. The loop may call Release.
func (s *Spool) Lane(lane Lane) iter.Seq2[LaneEntry, error] {
	return func(yield func(LaneEntry, error) bool) {
		segments, err := s.lanes.segmentsIn(lane)
		if err != nil {
			yield(LaneEntry{}, err)
			return
		}
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

// each yields the events of a segment, and says false when yield did.
func (g segment) each(yield func(LaneEntry, error) bool) bool {
	file, err := os.Open(g.path)
	if errors.Is(err, os.ErrNotExist) {
		return true // released meanwhile, or see stillThere
	}
	if err != nil {
		return yield(LaneEntry{}, err)
	}
	defer file.Close()
	refs, err := segmentRefs(file)
	if err != nil {
		return yield(LaneEntry{}, fmt.Errorf("spool: %s cannot be read; restart promptspool to have it examined: %w", g.path, err))
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
