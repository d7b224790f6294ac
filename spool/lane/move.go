package lane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/frame"
)

const (
	reasonBytesMax = 4096 // a longer reason is cut

	// Bounds of a segment. A larger event has one of its own.
	segmentEventsMax = 1000
	segmentBytesMax  = 8 << 20
)

// Move copies entries to a lane, in segments of a bounded size. An entry whose sequence
// is already there stays as it was.
//
// When it returns nil, all of them are fsynced there. On an error some may be in the lane.
// ErrFull means that there is no room.
func (l *Lanes) Move(lane Lane, reason string, now time.Time, entries []frame.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	var batch []event
	bytes := 0
	for i, e := range entries {
		// After a crash between the move and its Ack, the same events are moved again.
		known, err := l.hasLocked(lane, e.Seq)
		if err != nil {
			return err
		}
		if !known {
			batch = append(batch, wrap(reason, now, e))
			bytes += len(e.Data)
		}

		last := i+1 == len(entries)
		full := last || len(batch) == segmentEventsMax || bytes+len(entries[i+1].Data) > segmentBytesMax
		if !full || len(batch) == 0 {
			continue
		}

		if err := l.commitLocked(lane, batch); err != nil {
			return fmt.Errorf("spool: cannot move %d events to the %s lane: %w", len(batch), lane, err)
		}
		batch, bytes = nil, 0
	}
	return nil
}

// commitLocked writes events to a new segment.
func (l *Lanes) commitLocked(lane Lane, events []event) error {
	size := int64(segmentHeaderBytes)
	for _, e := range events {
		size += int64(len(e.wrapped)) + frame.HeaderBytes*int64(frameCount(len(e.wrapped)))
	}

	// The bound is of disk, so a small segment counts a whole block.
	if l.bytes+disk.WholeBlocks(size) > l.config.BytesMax {
		return ErrFull
	}

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
	path := filepath.Join(l.dir, fmt.Sprintf("%s-%016x", lane, events[0].key.Seq))
	for base, n := path, 2; disk.Exists(path); n++ {
		path = fmt.Sprintf("%s-%d", base, n)
	}

	g, err := writeSegment(path, lane, events)
	if err != nil {
		return l.diskError(err)
	}

	// The events are durable now. Only then may the count be raised: see count.
	l.config.NoteDisk(g.bytes)
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

// hasLocked reports whether an event is in a lane. It reads the headers of the segments
// that may hold it, because memory holds no sequences.
func (l *Lanes) hasLocked(lane Lane, seq uint64) (bool, error) {
	// A clone, because forgetting a segment takes it out of the slice.
	for _, g := range slices.Clone(l.segments) {
		if g.lane != lane || seq < g.first || seq > g.last {
			continue
		}

		// An event whose file is gone counts as not there, and is moved again.
		if missing, err := l.forgetMissingLocked(g); err != nil {
			return false, err
		} else if missing {
			continue
		}

		_, keys, err := describeSegment(g.path, lane)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(keys, func(k frame.EventKey) bool { return k.Seq == seq }) {
			return true, nil
		}
	}
	return false, nil
}
