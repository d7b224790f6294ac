package lane

import (
	"errors"
	"slices"

	"promptspool/spool/crashpoint"
	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
)

// Events whose record is at a documented limit are refused forever, however many more a
// program sends. They are dead letters with two additional bounds: a share of the lanes
// for each key, and whatever space everything else leaves. At a bound the oldest of them
// are dropped, which is counted and logged.

// limitedShare is the fraction of BytesMax that dead letters of limits of one key may use:
// one in this many parts.
const limitedShare = 16

// limitedSegments is how many segments a key's share holds at least, so that dropping one
// frees a part of it.
const limitedSegments = 4

// joinedBytesMax is the size up to which a segment is replaced by one with more events.
const joinedBytesMax = 16 << 10

func anyLimited(g segment) bool { return g.limited }

// commitLimitedLocked writes events of one key to a new segment, in the place of older ones
// where the key's share or the lanes are full.
func (l *Lanes) commitLimitedLocked(events []event) error {
	const full = "the share of their key is full"
	key, share := events[0].key.Key, l.config.BytesMax/limitedShare
	ofKey := func(g segment) bool { return g.limited && g.key == key }
	excess := l.limitedBytesLocked(ofKey) + segmentSize(events) - share

	// Events that come once more after a crash may be older than all stored ones, and
	// replace nothing.
	if n := l.olderThanAllLocked(ofKey, events); excess > 0 && n > 0 {
		l.countDropped(n, full)
		events = events[n:]
		if len(events) == 0 {
			return nil
		}
		excess = l.limitedBytesLocked(ofKey) + segmentSize(events) - share
	}

	// One event may be larger than the share.
	older := func(g segment) bool { return ofKey(g) && g.first < events[0].key.Seq }
	if excess > l.limitedBytesLocked(older) {
		l.countDropped(len(events), full)
		return nil
	}

	_, err := l.dropLimitedLocked(excess, older, full)
	if err == nil {
		err = l.commitLocked(kind{Dead, true}, events)
	}
	if errors.Is(err, ErrFull) {
		l.countDropped(len(events), "the lanes are full")
		return nil
	}
	return err
}

// olderThanAllLocked returns how many of the events, which are in order, are older than those in
// all segments that pick selects; 0 if there are none.
func (l *Lanes) olderThanAllLocked(pick func(segment) bool, events []event) int {
	oldest, found := uint64(0), false
	for _, g := range l.segments {
		if pick(g) && (!found || g.first < oldest) {
			oldest, found = g.first, true
		}
	}

	n := slices.IndexFunc(events, func(e event) bool { return !found || e.key.Seq >= oldest })
	if n < 0 {
		return len(events)
	}
	return n
}

// joinLocked returns the segment that more events of a key replace, with its events; none
// if there is none to replace. Otherwise a program that keeps sending at a limit for days
// would leave a file for each event. Its events are older than the first of those: the
// oldest are dropped together.
func (l *Lanes) joinLocked(k kind, first frame.EventKey) (joined segment, events []event, err error) {
	for _, g := range l.segments {
		if k.limited && g.limited && g.key == first.Key {
			joined = g
		}
	}
	if joined.count == 0 || joined.last > first.Seq ||
		joined.count >= segmentEventsMax/2 || joined.bytes > joinedBytesMax {
		return segment{}, nil, nil
	}
	if missing, err := l.forgetMissingLocked(joined); missing || err != nil {
		return segment{}, nil, err
	}

	// One that cannot be read stays as it is, for the next start to examine.
	events, err = joined.raw()
	if err != nil {
		return segment{}, nil, nil
	}
	return joined, events, nil
}

// GiveWay deletes the oldest dead letters of limits, as many as free this many bytes of
// disk. It reports whether it did; not if all of them would not be enough.
func (l *Lanes) GiveWay(bytes int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writableLocked() != nil || l.limitedBytesLocked(anyLimited) < bytes {
		return false
	}

	// An error has failed the spool, as far as it must.
	dropped, _ := l.dropLimitedLocked(bytes, anyLimited, "the spool or its disk is full")
	return dropped
}

// limitedBytesLocked returns how much disk the segments that pick selects take.
func (l *Lanes) limitedBytesLocked(pick func(segment) bool) (bytes int64) {
	for _, g := range l.segments {
		if pick(g) {
			bytes += g.bytes
		}
	}
	return bytes
}

// dropLimitedLocked deletes the oldest segments that pick selects, until they free this many
// bytes of disk. It reports whether it deleted any.
func (l *Lanes) dropLimitedLocked(bytes int64, pick func(segment) bool, why string) (bool, error) {
	var dropped []segment
	events := 0
	l.segments = slices.DeleteFunc(l.segments, func(g segment) bool {
		if bytes <= 0 || !pick(g) {
			return false
		}

		dropped = append(dropped, g)
		events += g.count
		bytes -= g.bytes
		l.bytes -= g.bytes
		l.usage[Dead].Add(g.key, -g.count, 0)
		return true
	})
	if len(dropped) == 0 {
		return false, nil
	}

	// The count is lowered before the events go: see count.
	if err := l.saveCountLocked(); err != nil {
		return false, err
	}
	l.countDropped(events, why)
	crashpoint.Reach(crashpoint.LaneDropCounted)

	// All of them share one sync: a write may wait for their space.
	var errs []error
	for _, g := range dropped {
		errs = append(errs, disk.RemoveAll(g.path))
	}
	if err := errors.Join(append(errs, disk.SyncDir(l.dir))...); err != nil {
		return false, l.diskError(err)
	}
	crashpoint.Reach(crashpoint.LaneDropped)
	return true, nil
}

// countDropped counts and logs dead letters of limits that are given up.
func (l *Lanes) countDropped(events int, why string) {
	l.config.CountDropped(events)
	l.config.Logger.Error("dead letters whose record is at a limit are dropped, the oldest first",
		"events", events, "reason", why, "dir", l.dir)
}
