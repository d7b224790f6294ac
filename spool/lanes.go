package spool

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLanesFull means that the lanes, or the disk under them, have no room for more.
//
// Events that were not moved stay in the spool. Replay or purge what is in the lanes, or
// raise --spool-bytes-max.
var ErrLanesFull = errors.New("held events and dead letters fill their share of the disk; " +
	"replay or purge them, or raise --spool-bytes-max")

// Lane is a place for events that cannot be delivered and must not hold up the others.
type Lane byte

// The lanes.
const (
	LaneHeld Lane = 'h' // events of a key that the server rejects
	LaneDead Lane = 'd' // events that the server rejects for their content
)

// String returns the lane's name, as used in messages and in the names of its files.
func (l Lane) String() string {
	if l == LaneDead {
		return "dead"
	}
	return "held"
}

// LaneEntry is an event in a lane, with why and when it was moved there.
type LaneEntry struct {
	Entry
	Reason  string
	MovedAt time.Time
}

const (
	reasonBytesMax   = 4096 // a longer reason is cut
	laneCommitEvents = 1000 // bounds the events of a segment
)

// lanes are both lanes: a folder of segments (segment.go), named held-SEQUENCE or
// dead-SEQUENCE by the first event that was in it. Memory grows with the segments, not
// with the events.
type lanes struct {
	dir      string
	bytesMax int64 // of disk, both together
	log      *slog.Logger

	// How the lanes talk to the spool. They must not be called with Spool.mu held.
	checkFailed func() error      // returns why nothing may be written, nil if it may
	fail        func(error) error // reports a failed fsync
	countLost   func(events int)
	noteDisk    func(bytes int64) // counts disk that was taken

	mu       sync.Mutex
	closed   bool
	count    laneCount
	lost     map[Lane]int // events found lost since the spool was opened
	segments []segment    // in order of their first sequence
	usage    map[Lane]*usage
	bytes    int64     // of disk, both together
	newestAt time.Time // the latest time of an append, of all events that were ever seen in a lane
}

// addLocked records a segment and the events in it.
func (l *lanes) addLocked(g segment, events []eventKey) {
	// After those with the same first sequence, so that files stay in the order of their
	// moves.
	i, _ := slices.BinarySearchFunc(l.segments, g.first, func(s segment, first uint64) int {
		if s.first <= first {
			return -1
		}
		return 1
	})
	l.segments = slices.Insert(l.segments, i, g)
	l.bytes += g.bytes

	for _, k := range events {
		l.usage[g.lane].add(k.key, 1, int64(k.bytes))
		if k.at.After(l.newestAt) {
			l.newestAt = k.at
		}
	}
}

// dropLocked forgets a segment, but not the usage of its events, and returns it if it was
// known.
func (l *lanes) dropLocked(path string) (g segment, known bool) {
	i := slices.IndexFunc(l.segments, func(s segment) bool { return s.path == path })
	if i < 0 {
		return g, false
	}

	g = l.segments[i]
	l.segments = slices.Delete(l.segments, i, i+1)
	l.bytes -= g.bytes
	return g, true
}

// close ends all use of the lanes. A second call does nothing.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()

	if !l.closed && l.count.file != nil {
		_ = l.count.file.Close()
	}
	l.closed = true
}

// writableLocked returns why nothing may be written, or nil.
func (l *lanes) writableLocked() error {
	if l.closed {
		return ErrClosed
	}
	return l.checkFailed()
}

// move copies entries to a lane, in segments of a bounded size. An entry whose sequence
// is already there stays as it was.
func (l *lanes) move(lane Lane, reason string, now time.Time, entries []Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	var batch []laneEvent
	bytes := 0
	for i, e := range entries {
		// After a crash between the move and its Ack, the same events are moved again.
		known, err := l.hasLocked(lane, e.Seq)
		if err != nil {
			return err
		}
		if !known {
			batch = append(batch, wrapLane(reason, now, e))
			bytes += len(e.Data)
		}

		last := i+1 == len(entries)
		full := last || len(batch) == laneCommitEvents || bytes+len(entries[i+1].Data) > commitBytesMax
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
func (l *lanes) commitLocked(lane Lane, events []laneEvent) error {
	size := int64(segmentHeaderBytes)
	for _, e := range events {
		size += int64(len(e.wrapped)) + frameHeaderBytes*int64(frameCount(len(e.wrapped)))
	}

	// The bound is of disk, so a small segment counts a whole block.
	if l.bytes+wholeBlocks(size) > l.bytesMax {
		return ErrLanesFull
	}

	if err := os.Mkdir(l.dir, 0o700); err == nil {
		err = syncDir(filepath.Dir(l.dir))
		if err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return l.diskError(err)
	}

	// A segment keeps its name when its first event is released, so the name may be
	// taken.
	path := filepath.Join(l.dir, fmt.Sprintf("%s-%016x", lane, events[0].key.seq))
	for base, n := path, 2; exists(path); n++ {
		path = fmt.Sprintf("%s-%d", base, n)
	}

	g, err := writeSegment(path, lane, events)
	if err != nil {
		return l.diskError(err)
	}

	// The events are durable now. Only then may the count be raised: see laneCount.
	l.noteDisk(g.bytes)
	l.addLocked(g, eventKeys(events))
	return l.saveCountLocked()
}

// diskError returns ErrLanesFull for a full disk, which is waited for. Any other error of
// the disk fails the spool.
func (l *lanes) diskError(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return errors.Join(ErrLanesFull, err)
	}
	return l.fail(err)
}

// hasLocked reports whether an event is in a lane. It reads the headers of the segments
// that may hold it, because memory holds no sequences.
func (l *lanes) hasLocked(lane Lane, seq uint64) (bool, error) {
	for _, g := range slices.Clone(l.segments) {
		if g.lane != lane || seq < g.first || seq > g.last {
			continue
		}

		if missing, err := l.forgetMissingLocked(g); err != nil {
			return false, err
		} else if missing {
			continue
		}

		_, keys, err := describeSegment(g.path, lane)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(keys, func(k eventKey) bool { return k.seq == seq }) {
			return true, nil
		}
	}
	return false, nil
}

// release deletes events from a lane, segment by segment.
func (l *lanes) release(lane Lane, seqs []uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return err
	}

	wanted := make(map[uint64]bool, len(seqs))
	for _, seq := range seqs {
		wanted[seq] = true
	}

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
func (l *lanes) releaseFromLocked(g segment, wanted map[uint64]bool) error {
	if missing, err := l.forgetMissingLocked(g); missing || err != nil {
		return err
	}

	file, err := os.Open(g.path)
	if err != nil {
		return err
	}
	defer file.Close()
	refs, err := segmentRefs(file)
	if err != nil {
		return err
	}

	var rest []laneEvent
	var gone []eventKey
	for _, ref := range refs {
		if wanted[ref.key.seq] {
			gone = append(gone, ref.key)
			continue
		}

		// A damaged event is copied as it is: it must not keep the events beside it from
		// going.
		e, err := readLaneEvent(file, ref)
		if err != nil {
			if e, err = rawLaneEvent(file, ref); err != nil {
				return err
			}
		}
		rest = append(rest, e)
	}
	if len(gone) == 0 {
		return nil
	}

	// The count is lowered before the events go: see laneCount.
	if err := l.saveCountLessLocked(g.lane, len(gone)); err != nil {
		return err
	}

	left := g
	if len(rest) == 0 {
		err = errors.Join(os.Remove(g.path), syncDir(l.dir))
	} else {
		left, err = writeSegment(g.path, g.lane, rest)
	}
	if err != nil {
		return l.diskError(err)
	}

	l.dropLocked(g.path)
	for _, k := range gone {
		l.usage[g.lane].add(k.key, -1, -int64(k.bytes))
	}
	if len(rest) > 0 {
		l.addLocked(left, nil)
	}
	return nil
}

func (l *lanes) segmentsIn(lane Lane) ([]segment, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}

	return slices.DeleteFunc(slices.Clone(l.segments), func(g segment) bool { return g.lane != lane }), nil
}

func (l *lanes) events(lane Lane) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage[lane].total.events
}

func (l *lanes) newest() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newestAt
}

func (l *lanes) keys(lanes ...Lane) map[uint32]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()

	keys := make(map[uint32]struct{})
	for _, lane := range lanes {
		for key := range maps.Keys(l.usage[lane].keys) {
			keys[key] = struct{}{}
		}
	}
	return keys
}
