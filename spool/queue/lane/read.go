package lane

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/dustin/go-humanize/english"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

// All yields the events of a lane, with one in memory at a time.
//
// It goes file by file, and yields each file as it was when it was opened. The events of
// one move are in order of sequence. An event that cannot be read is yielded as an error,
// with Seq and Key set, and the next one follows. Nothing follows the error of closed
// lanes. The loop may call Release.
func (l *Lanes) All(lane Lane) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		segments, err := l.segmentsIn(lane)
		if err != nil {
			yield(Entry{}, err)
			return
		}

		// No lock is held here: the loop may call Release, and a snapshot of a file stays
		// readable, even if the file is replaced or removed meanwhile.
		for _, g := range segments {
			if !g.each(yield) {
				return
			}
			if err := l.stillThere(g); err != nil && !yield(Entry{}, err) {
				return
			}
		}
	}
}

// raw returns the events of a segment, with their frames as they are.
func (g segment) raw() (events []event, err error) {
	file, refs, err := openSegment(g.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	for _, ref := range refs {
		e, failed := rawEvent(file, ref)
		events, err = append(events, e), errors.Join(err, failed)
	}
	return events, err
}

// each yields the events of a segment. It returns false when yield did.
func (g segment) each(yield func(Entry, error) bool) bool {
	file, refs, err := openSegment(g.path)
	if errors.Is(err, os.ErrNotExist) {
		// It was released meanwhile, or is lost, which stillThere reports.
		return true
	}
	if errors.Is(err, frame.ErrDamaged) {
		err = fmt.Errorf("spool: %s cannot be read; restart promptspool to have it examined: %w", g.path, err)
	}
	if err != nil {
		return yield(Entry{}, err)
	}
	defer file.Close()

	for _, ref := range refs {
		var e Entry
		wrapped, err := readEvent(file, ref)
		if err == nil {
			e, err = unwrap(ref.key, wrapped, g.limited)
		}
		if err != nil {
			e = Entry{Entry: frame.Entry{Seq: ref.key.Seq, Key: ref.key.Key, At: ref.key.At}, AtLimit: g.limited}
			err = fmt.Errorf("spool: event %d in the %s lane cannot be read: %w", ref.key.Seq, g.lane, err)
		}

		// A damaged event does not hide the ones after it.
		if !yield(e, err) {
			return false
		}
	}
	return true
}

// Folder reads the lanes of a spool that no process has open. It changes nothing.
//
// The caller must keep out a process that would. A Folder holds no file open.
type Folder struct {
	dir   string // of the segments
	count disk.Slots
}

// PeekFolder looks at the lanes of the spool in dir. There need not be any.
func PeekFolder(dir string) (Folder, error) {
	count, err := disk.PeekSlots(filepath.Join(dir, countName), countMagic)
	return Folder{filepath.Join(dir, folderName), count}, err
}

// AtLeast returns how many events the lane held when the spool was stopped, or fewer.
//
// It returns 0 if the file with the number cannot be read.
func (f Folder) AtLeast(lane Lane) int { return atLeast(f.count, lane) }

// All yields the events of a lane, as Lanes.All does.
//
// From a damaged file, which Open would set aside, it yields the events that are whole,
// and then an error with Seq 0.
func (f Folder) All(lane Lane) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		names, err := segmentNames(f.dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}

		for _, n := range names {
			if n.kind.lane != lane || n.unfinished {
				continue
			}

			// A damaged file is salvaged, any other error is passed on, and the loop
			// continues after both.
			path := filepath.Join(f.dir, n.name)
			_, _, err := describeSegment(path, n.kind)
			switch {
			case err == nil && !segment{path: path, kind: n.kind}.each(yield):
				return
			case errors.Is(err, frame.ErrDamaged) && !eachSalvaged(path, n.kind, yield):
				return
			case err != nil && !errors.Is(err, frame.ErrDamaged) && !yield(Entry{}, err):
				return
			}
		}
	}
}

// eachSalvaged yields what is whole in a damaged file of a lane, then an error. It
// returns false when yield did.
func eachSalvaged(path string, k kind, yield func(Entry, error) bool) bool {
	whole, promised, err := salvage(path)
	if err != nil {
		return yield(Entry{}, err)
	}

	for _, w := range whole {
		if e, err := unwrap(w.key, w.wrapped, k.limited); !yield(e, err) {
			return false
		}
	}

	all := english.Plural(max(promised, len(whole)), "event", "")
	return yield(Entry{}, fmt.Errorf("spool: %s is damaged: %d of %s in it whole", path, len(whole), all))
}

// Release deletes events from a lane, segment by segment.
//
// When it returns nil, they are gone for good, even after a crash. On an error some may
// be gone. Releasing a sequence that is not in the lane succeeds.
func (l *Lanes) Release(lane Lane, seqs []uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	wanted := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		wanted[seq] = true
	}

	// A clone, because each release changes the slice. Segments may overlap, so one
	// sequence is looked for in several.
	for _, g := range slices.Clone(l.segments) {
		inside := func(s uint64) bool { return g.first <= s && s <= g.last }
		if g.lane != lane || !slices.ContainsFunc(seqs, inside) {
			continue
		}
		if err := l.releaseFromLocked(g, wanted); err != nil {
			return fmt.Errorf("spool: cannot remove events from %s: %w", g.path, err)
		}
	}
	return nil
}

// releaseFromLocked deletes the wanted events from one segment, by replacing or removing
// its file.
func (l *Lanes) releaseFromLocked(g segment, wanted map[uint64]bool) error {
	if missing, err := l.forgetMissingLocked(g); missing || err != nil {
		return err
	}

	file, refs, err := openSegment(g.path)
	if err != nil {
		return err
	}
	defer file.Close()

	var rest []event
	var gone []frame.EventKey
	for _, ref := range refs {
		if wanted[ref.key.Seq] {
			gone = append(gone, ref.key)
			continue
		}

		// Copied as it is, without a look inside: a damaged event must not keep the events
		// beside it from going.
		e, err := rawEvent(file, ref)
		if err != nil {
			return err
		}
		rest = append(rest, e)
	}
	if len(gone) == 0 {
		return nil
	}

	// The count is lowered before the events go: see count.
	if err := l.saveCountLessLocked(g.lane, len(gone)); err != nil {
		return err
	}

	// Either all of the segment goes, or a new one with the rest takes its name. A crash
	// leaves the old file, whose events are then released once more.
	left := g
	if len(rest) == 0 {
		err = errors.Join(disk.Remove(g.path), disk.SyncDir(l.dir))
	} else {
		left, err = writeSegment(g.path, g.kind, rest)
	}
	if err != nil {
		return l.diskError(err)
	}

	l.dropLocked(g.path)
	for _, k := range gone {
		l.usage[g.lane].Add(k.Key, -1, 0)
	}
	if len(rest) > 0 {
		l.addLocked(left, nil)
	}
	return nil
}
