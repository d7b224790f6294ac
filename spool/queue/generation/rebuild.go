package generation

import (
	"errors"
	"fmt"
	"os"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
)

// Rebuild writes the whole events to a new sealed generation in the folder build.
//
// It writes those from <= sequence < end, and returns how many. build must not exist.
// Events that the disk can no longer read are removed from the evidence. When Rebuild
// returns nil, all is durable but the name of the folder. On an error, what is left in
// build is of no use.
func (ev *Evidence) Rebuild(build string, from, end uint64, log badger.Logger) (kept int, err error) {
	if err := os.Mkdir(build, 0o700); err != nil {
		return 0, err
	}

	// Without SyncWrites: the build is not read before it has its name, so it is enough
	// to sync it once, when it is closed.
	capacity := ev.Capacity()
	options := generationOptions(build, capacity, log).WithMemTableSize(rebuildMemTableBytes)
	db, err := createDatabase(options, capacity)
	if err != nil {
		err = fmt.Errorf("spool: cannot rebuild %s%s: %w", ev.dir, disk.SpaceAdvice(err), err)
		return 0, errors.Join(err, disk.RemoveAll(build))
	}

	for _, seq := range ev.Sequences() {
		if seq < from || seq >= end {
			continue
		}

		// One commit an event, so that one which cannot be read takes no other with it.
		err := copyEvent(db, ev.events[seq])
		// A block went bad since the files were examined.
		if disk.IsUnreadable(err) {
			delete(ev.events, seq)
			continue
		}
		if err != nil {
			return 0, errors.Join(fmt.Errorf("spool: cannot rebuild %s: %w", ev.dir, err), db.Close())
		}
		kept++
	}
	return kept, closeSealed(db)
}

// Capacity returns the space that all whole events need in one generation.
func (ev *Evidence) Capacity() (bytes int64) {
	for _, refs := range ev.events {
		for _, ref := range refs {
			bytes += CapacityFor(1, int64(ref.key.Bytes))
		}
	}
	return bytes
}

// copyEvent commits the frames of one event as they are in the raw files, and verifies
// each again.
func copyEvent(db *badger.DB, refs []frameRef) error {
	size := uint32(0)
	for _, ref := range refs {
		size += ref.key.Bytes
	}

	// An event is never split over two commits: half of it would be of no use.
	txn := db.NewTransaction(true)
	defer txn.Discard()
	for _, ref := range refs {
		f, b, err := ref.read()
		if err != nil {
			return err
		}

		// DropUncertain may have given the event another sequence.
		k := ref.key
		if f.Seq != k.Seq {
			f.Seq = k.Seq
			f.Seal(b)
		}

		k.Bytes = size
		if err := txn.Set(k.Encode(), b); err != nil {
			return err
		}
	}
	return txn.Commit()
}

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
