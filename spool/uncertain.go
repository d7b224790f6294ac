package spool

import (
	"maps"
	"slices"
)

// A commit is answered once both logs are synced, the value log first. Until then the
// kernel may write the write-ahead log by itself. If the power fails in that time, the
// next start finds a commit whose keys are there and whose frames are not, although no
// app was told that it is stored.
//
// Such a commit differs from damage by what came after it. A commit begins when the one
// before it has been synced, and the cursor, saved each second, never gets ahead of the
// commits. So only the newest commit is in doubt, and only as far as it is beyond the
// cursor.
//
// Its missing events are not counted as lost but apart (Status.Uncertain), and their
// sequences are reused: what is whole behind them moves up.

// dropUncertain removes the events that may never have been answered from what a
// generation has committed, and returns how many there were.
//
// All sequences below answered were answered. Call it for the newest generation only:
// where another one follows, everything in this one was synced.
func (ev *evidence) dropUncertain(answered uint64) int {
	if ev.committed == 0 {
		return 0
	}
	for seq := range ev.events {
		if seq > ev.committed {
			return 0 // of a later commit
		}
	}

	missing := ev.holes(max(ev.newest, answered), ev.committed+1)
	gone, shift := 0, uint64(0)
	for _, hole := range missing {
		gone += int(hole.end - hole.from)
	}
	if gone == 0 {
		return 0
	}

	// In ascending order, so that every event moves to a sequence that is free by then.
	for _, seq := range slices.Sorted(maps.Keys(ev.events)) {
		for len(missing) > 0 && missing[0].end <= seq {
			shift += missing[0].end - missing[0].from
			missing = missing[1:]
		}
		if shift > 0 {
			ev.renumber(seq, seq-shift)
		}
	}

	ev.committed -= uint64(gone)
	ev.broken = true // Badger would look for the frames that are missing
	return gone
}

// renumber gives an event another sequence. Its frames get it when they are copied.
func (ev *evidence) renumber(from, to uint64) {
	refs := ev.events[from]
	for i := range refs {
		refs[i].key.Seq = to
	}
	delete(ev.events, from)
	ev.events[to] = refs
}

// noteUncertain counts and logs events that are missing and may never have been answered.
// The caller must not hold mu.
func (s *Spool) noteUncertain(events int, generation string) {
	if events == 0 {
		return
	}

	s.mu.Lock()
	s.uncertain += uint64(events)
	s.mu.Unlock()

	s.config.Metrics.SpoolUncertain.Add(float64(events))
	s.config.Logger.Warn("events of the newest commit are missing; "+
		"it is not certain that they were acknowledged: "+
		"the power most likely failed before they could be",
		"events", events, "generation", s.path(generation))
}
