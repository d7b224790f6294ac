package lane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

const (
	reasonBytesMax = 4096 // a longer reason is cut

	// Bounds of a segment. A larger event has its own segment.
	segmentEventsMax = 1000
	segmentBytesMax  = 8 << 20
)

// Move copies entries of one key to a lane, in segments of a bounded size. An entry whose
// sequence is already there stays as it was. All of them are at a limit, or none.
//
// When it returns nil, all of them are fsynced there. On an error some may be in the lane.
// ErrFull means that there would be no space even without dead letters of limits. For those
// there always is: the older ones are dropped first, and they themselves if that is not enough.
func (l *Lanes) Move(lane Lane, now time.Time, entries []Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	// After a crash between the move and its Ack, the same events are moved again.
	known, err := l.knownLocked(lane, entries)
	if err != nil {
		return err
	}

	bytesMax := segmentBytesMax
	commit := func(events []event) error { return l.commitLocked(kind{lane: lane}, events) }
	if len(entries) > 0 && entries[0].AtLimit {
		bytesMax = int(min(segmentBytesMax, l.config.BytesMax/limitedShare/limitedSegments))
		commit = l.commitLimitedLocked
	}

	var batch []event
	bytes := 0
	for i, e := range entries {
		if !known[e.Seq] {
			batch = append(batch, wrap(now, e))
			bytes += len(e.Data)
		}

		last := i+1 == len(entries)
		full := last || len(batch) == segmentEventsMax || bytes+len(entries[i+1].Data) > bytesMax
		if !full || len(batch) == 0 {
			continue
		}

		if err := commit(batch); err != nil {
			return fmt.Errorf("spool: cannot move %d events to the %s lane: %w", len(batch), lane, err)
		}
		batch, bytes = nil, 0
	}
	return nil
}

// commitLocked writes events to a new segment. If there is no space, dead letters of limits
// give way.
func (l *Lanes) commitLocked(k kind, events []event) error {
	// The bound is of disk, so a small segment counts a whole block. It may be out of reach
	// even without what may be dropped, which then stays.
	size, bound := segmentSize(events), l.config.BytesMax
	if l.bytes-l.limitedBytesLocked(anyLimited)+size > bound {
		return ErrFull
	}
	if _, err := l.dropLimitedLocked(l.bytes+size-bound, anyLimited, "the lanes are full"); err != nil {
		return err
	}

	for {
		err := l.createLocked(k, events)
		if !errors.Is(err, ErrFull) {
			return err
		}
		if dropped, failed := l.dropLimitedLocked(size, anyLimited, "the disk is full"); !dropped {
			return errors.Join(err, failed)
		}
	}
}

// segmentSize returns how many bytes of disk events take.
func segmentSize(events []event) int64 {
	size := int64(segmentHeaderBytes)
	for _, e := range events {
		size += int64(len(e.wrapped)) + frame.HeaderBytes*int64(frameCount(len(e.wrapped)))
	}
	return disk.WholeBlocks(size)
}

// createLocked makes a segment of events. It returns ErrFull if the disk is full.
func (l *Lanes) createLocked(k kind, events []event) error {
	// Made with the first segment, so that empty lanes cost nothing. Its name must be
	// durable before that of a file in it.
	if err := os.Mkdir(l.dir, 0o700); err == nil {
		err = disk.SyncDir(filepath.Dir(l.dir))
		if err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return l.diskError(err)
	}

	// A segment keeps its name when its first event is released, so the name may be
	// taken.
	path := filepath.Join(l.dir, fmt.Sprintf("%s-%016x", k, events[0].key.Seq))
	for base, n := path, 2; disk.Exists(path); n++ {
		path = fmt.Sprintf("%s-%d", base, n)
	}

	joined, earlier, err := l.joinLocked(k, events[0].key)
	if err != nil {
		return err
	}
	if len(earlier) > 0 {
		path = joined.path
	}

	g, err := writeSegment(path, k, append(earlier, events...))
	if err != nil {
		return l.diskError(err)
	}

	// The events are durable now. Only then may the count be raised: see count.
	l.config.NoteDisk(g.bytes - joined.bytes)
	l.dropLocked(joined.path)
	l.addLocked(g, eventKeys(events))
	return l.saveCountLocked()
}

// diskError returns ErrFull for a full disk, which is waited for. Any other error of
// the disk fails the spool.
func (l *Lanes) diskError(err error) error {
	if disk.IsFull(err) {
		return errors.Join(ErrFull, err)
	}
	return l.config.Fail(err)
}

// knownLocked returns which of these sequences are in a lane. It reads the headers of the
// segments that may hold one, because memory holds no sequences.
func (l *Lanes) knownLocked(lane Lane, entries []Entry) (map[uint64]bool, error) {
	moved := make(map[uint64]bool, len(entries))
	for _, e := range entries {
		moved[e.Seq] = true
	}

	// A clone, because forgetting a segment takes it out of the slice.
	known := make(map[uint64]bool)
	for _, g := range slices.Clone(l.segments) {
		inside := func(e Entry) bool { return g.first <= e.Seq && e.Seq <= g.last }
		if g.lane != lane || !slices.ContainsFunc(entries, inside) || g.limited && g.key != entries[0].Key {
			continue
		}

		// An event whose file is gone counts as not there, and is moved again.
		if missing, err := l.forgetMissingLocked(g); err != nil {
			return nil, err
		} else if missing {
			continue
		}

		_, keys, err := describeSegment(g.path, g.kind)
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if moved[k.Seq] {
				known[k.Seq] = true
			}
		}
	}
	return known, nil
}
