package lane

import (
	"errors"
	"fmt"
	"iter"
	"os"

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
	file, err := disk.OpenSnapshot(g.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	refs, err := segmentRefs(file.SectionReader)
	for _, ref := range refs {
		e, failed := rawEvent(file, ref)
		events, err = append(events, e), errors.Join(err, failed)
	}
	return events, err
}

// each yields the events of a segment. It returns false when yield did.
func (g segment) each(yield func(Entry, error) bool) bool {
	file, err := disk.OpenSnapshot(g.path)
	if errors.Is(err, os.ErrNotExist) {
		return true // released meanwhile, or lost, which stillThere reports
	}
	if err != nil {
		return yield(Entry{}, err)
	}
	defer file.Close()

	refs, err := segmentRefs(file.SectionReader)
	if err != nil {
		err = fmt.Errorf("spool: %s cannot be read; restart promptspool to have it examined: %w", g.path, err)
		return yield(Entry{}, err)
	}

	for _, ref := range refs {
		var e Entry
		wrapped, err := readEvent(file, ref)
		if err == nil {
			e, err = unwrap(wrapped.key, wrapped.wrapped, g.limited)
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
