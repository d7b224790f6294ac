package generation

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
// Its missing events are not counted as lost but apart (spool.Status.Uncertain), and
// their sequences are reused: whole events after them move up.

// DropUncertain removes events that may never have been answered from what was committed.
//
// It returns how many there were. Whole events after them get lower sequences. All
// sequences below answered were answered. Call it for the newest generation only: where
// another one follows, everything in this one was synced.
func (ev *Evidence) DropUncertain(answered uint64) int {
	if ev.committed == 0 {
		return 0
	}
	for seq := range ev.events {
		if seq > ev.committed {
			// It is of a later commit.
			return 0
		}
	}

	// Below answered, a missing event is a lost one, even if it is of the newest commit.
	missing := ev.Holes(max(ev.newest, answered), ev.committed+1)
	gone, shift := 0, uint64(0)
	for _, hole := range missing {
		gone += int(hole.End - hole.From)
	}
	if gone == 0 {
		return 0
	}

	// In ascending order, so that every event moves to a sequence that is free by then.
	for _, seq := range ev.Sequences() {
		for len(missing) > 0 && missing[0].End <= seq {
			shift += missing[0].End - missing[0].From
			missing = missing[1:]
		}
		if shift > 0 {
			ev.renumber(seq, seq-shift)
		}
	}

	ev.committed -= uint64(gone)
	// Badger would look for the frames that are missing.
	ev.Broken = true
	return gone
}

// renumber gives an event another sequence. Its frames get it when they are copied.
func (ev *Evidence) renumber(from, to uint64) {
	refs := ev.events[from]
	for i := range refs {
		refs[i].key.Seq = to
	}
	delete(ev.events, from)
	ev.events[to] = refs
}
