package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
	"promptspool/spool/queue/generation"
	"promptspool/spool/queue/lane"
)

// Bounds of one reading by Queue.Waiting; a larger event comes alone.
const (
	exportEventsMax = 1000
	exportBytesMax  = 4 << 20
)

// Waiting yields, in order, the events that wait now and are whole.
//
// Some 4 MiB of them are in memory at a time. Events that are acknowledged meanwhile may
// be left out. Unreadable ones are counted and logged, as by Read. The sequence ends
// after an error. Waiting takes turns with calls that read and acknowledge.
func (q *Queue) Waiting(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		// Events appended from here on are left out, or a busy spool would never come to
		// an end.
		newest, _ := q.Newest()
		for from := q.Frontier(); from <= newest; from = max(from, q.Frontier()) {
			entries, end, err := q.Read(ctx, from, exportEventsMax, exportBytesMax)
			if err != nil {
				yield(Entry{}, err)
				return
			}

			for _, e := range entries {
				if e.Seq > newest || !yield(e, nil) {
					return
				}
			}
			from = end
		}
	}
}

// errEnough ends an inspection when the caller's loop ends.
var errEnough = errors.New("no more is wanted")

// Waiting yields, in order, the events that wait and are whole, with one in memory at a
// time.
//
// Damaged events are left out, see Check. The sequence ends after an error.
func (f *Folder) Waiting() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		in := inspection{folder: f, visit: func(ev generation.Evidence, from, end uint64) error {
			return yieldEvents(ev, from, end, yield)
		}}
		if err := in.run(context.Background()); err != nil && !errors.Is(err, errEnough) {
			yield(Entry{}, err)
		}
	}
}

// yieldEvents reads the whole events from <= sequence < end from the raw files. It
// returns errEnough when yield returns false.
func yieldEvents(ev generation.Evidence, from, end uint64, yield func(Entry, error) bool) error {
	for _, seq := range ev.Sequences() {
		if seq < from || seq >= end {
			continue
		}

		e, err := ev.Read(seq)
		if err != nil {
			return fmt.Errorf("spool: event %d in %s: %w", seq, ev.EventFile(seq), err)
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return nil
}

// Folder gives read-only access to the folder of a spool that no process has open.
//
// It changes nothing, so the folder may be on a disk that is mounted read-only. Several
// processes may have a Folder open at the same time, but no sidecar can start meanwhile.
// Not safe for concurrent use.
type Folder struct {
	dir    string
	lock   *os.File // nil when the folder has no LOCK, as a copy may not
	cursor disk.Slots
	lanes  lane.Folder
}

// OpenFolder opens the folder of a spool for reading; Close it afterwards. It rejects a
// folder that is not a spool, that a process uses, or whose format is newer.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir}
	if !disk.Exists(f.path(formatName)) {
		return nil, fmt.Errorf("spool: %s is not a spool: it has no %s file; give the data folder of a sidecar",
			dir, formatName)
	}
	if err := checkFormat(dir); err != nil {
		return nil, err
	}

	var err error
	f.lock, err = shareDir(dir)
	if err != nil {
		return nil, err
	}

	// Under the lock, so that no sidecar changes these files while they are read.
	var damage error
	f.cursor, err = disk.PeekSlots(f.path(cursorName), cursorMagic)
	f.lanes, damage = lane.PeekFolder(dir)
	if err := errors.Join(err, damage); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// shareDir takes a shared lock of the folder: it keeps out a process that would change
// the folder, but not one that only reads. It returns nil for a folder without LOCK.
func shareDir(dir string) (*os.File, error) {
	file, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	// Without waiting: a sidecar keeps its lock for as long as it runs.
	if err := disk.Share(file); err != nil {
		return nil, errors.Join(inUse(dir, file, err), file.Close())
	}
	return file, nil
}

// Close releases the folder.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

func (f *Folder) path(name string) string { return filepath.Join(f.dir, name) }
