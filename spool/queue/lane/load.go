package lane

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
	"promptspool/spool/rawlog"
)

// folderName is the folder of the segments, in the spool's.
const folderName = "lanes"

// Open loads the lanes of the spool in c.Dir; there need not be any.
//
// It reads the headers of every segment. A damaged segment goes to quarantine, and what is
// whole in it to a new one. Events that are lost by that, or with a file that is gone, are
// counted.
func Open(c Config) (*Lanes, error) {
	count, err := disk.OpenSlots(filepath.Join(c.Dir, countName), countMagic)
	if err != nil {
		return nil, err
	}

	l := &Lanes{
		config: c,
		dir:    filepath.Join(c.Dir, folderName),
		count:  count,
	}
	if err := l.load(); err != nil {
		_ = l.count.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lanes) load() error {
	l.mu.Lock()
	defer l.mu.Unlock()

	names, err := segmentNames(l.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		// Work that a crash left unfinished was never reported as done: its events are
		// still in the spool, or in the file that it was to replace.
		if n.unfinished {
			err = disk.Remove(filepath.Join(l.dir, n.name))
		} else {
			err = l.loadSegmentLocked(n)
		}
		if err != nil {
			return err
		}
	}

	// Events that the count has beyond those found, and those reported lost just now,
	// were in files that are gone.
	for _, lane := range []Lane{Held, Dead} {
		gone := atLeast(l.count, lane) - l.usage[lane].Events - l.lost[lane]
		l.loseLocked(lane, gone, "files of the lane are gone, or parts of them")
	}
	return l.saveCountLocked()
}

// segmentName is the name of a file of the lanes.
type segmentName struct {
	name       string
	kind       kind
	unfinished bool // it never became part of a lane
}

// segmentNames lists the files of both lanes; none if there is no folder. It rejects a
// folder with anything else in it.
func segmentNames(dir string) ([]segmentName, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	var names []segmentName
	for _, e := range entries {
		k, ok := parseKind(strings.TrimPrefix(e.Name(), unfinishedPrefix))
		if !ok {
			return nil, fmt.Errorf("spool: %s is not a file of a lane; move it away", filepath.Join(dir, e.Name()))
		}
		names = append(names, segmentName{e.Name(), k, strings.HasPrefix(e.Name(), unfinishedPrefix)})
	}
	return names, nil
}

func parseKind(name string) (kind, bool) {
	for _, k := range kinds {
		if strings.HasPrefix(name, k.String()+"-") {
			return k, true
		}
	}
	return kind{}, false
}

// loadSegmentLocked adds one file, or what can be salvaged from it.
func (l *Lanes) loadSegmentLocked(n segmentName) error {
	path, lane := filepath.Join(l.dir, n.name), n.kind.lane
	g, events, err := describeSegment(path, n.kind)
	if err == nil {
		l.addLocked(g, events)
		return nil
	}
	if !errors.Is(err, frame.ErrDamaged) {
		return err
	}

	// The damaged file goes to quarantine before a new one takes its name.
	whole, promised, err := salvage(path)
	if err != nil {
		return err
	}
	l.config.Logger.Error("a file of a lane is damaged", "file", path, "whole", len(whole))
	if err := l.config.Quarantine(filepath.Join(folderName, n.name)); err != nil {
		return err
	}

	if len(whole) == 0 {
		// No segment is empty.
		l.loseLocked(lane, max(promised, 1), path+" is damaged")
		return nil
	}
	g, err = writeSegment(path, n.kind, whole)
	if err != nil {
		return fmt.Errorf("spool: cannot write %s again%s: %w", path, disk.SpaceAdvice(err), err)
	}
	l.addLocked(g, eventKeys(whole))
	l.loseLocked(lane, promised-len(whole), path+" is damaged")
	return nil
}

// describeSegment reads the headers of a segment.
func describeSegment(path string, k kind) (segment, []frame.EventKey, error) {
	g := segment{kind: k, path: path}
	file, refs, err := openSegment(path)
	if err != nil {
		return g, nil, err
	}
	defer file.Close()

	// A segment is never written without events, so an empty one is damaged, too.
	if len(refs) == 0 {
		return g, nil, frame.ErrDamaged
	}

	g.key, g.count, g.first = refs[0].key.Key, len(refs), refs[0].key.Seq
	g.bytes = disk.WholeBlocks(refs[len(refs)-1].end)
	var keys []frame.EventKey
	for _, ref := range refs {
		g.first, g.last = min(g.first, ref.key.Seq), max(g.last, ref.key.Seq)
		keys = append(keys, ref.key)
	}
	return g, keys, nil
}

func eventKeys(events []event) []frame.EventKey {
	var keys []frame.EventKey
	for _, e := range events {
		keys = append(keys, e.key)
	}
	return keys
}

// salvage finds the whole events of a damaged segment, and returns how many its header
// promises, or 0 if the header is damaged, too.
func salvage(path string) (events []event, promised int, err error) {
	err = rawlog.Map(path, func(data []byte, _ []rawlog.Span) error {
		events, promised = salvageFrom(data)
		return nil
	})
	return events, promised, err
}

func salvageFrom(data []byte) (events []event, promised int) {
	if len(data) >= segmentHeaderBytes {
		count := int(binary.BigEndian.Uint32(data[4:]))
		if bytes.Equal(data[:segmentHeaderBytes], segmentHeader(count)) {
			promised = count
		}
	}

	var open event
	parts := uint16(0) // of the open event
	for _, f := range frame.All(data) {
		// An event counts when its last part follows all others. A part in between that
		// is damaged makes the rest of it useless.
		if f.Part == 0 {
			open, parts = event{key: f.EventKey}, 0
		}
		if f.Seq != open.key.Seq || f.Part != parts {
			continue
		}

		open.wrapped = append(open.wrapped, f.Payload...)
		parts++
		if parts == f.Parts {
			open.key.Bytes = uint32(len(open.wrapped))
			events = append(events, open)
		}
	}
	return slices.Clip(events), promised
}

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
