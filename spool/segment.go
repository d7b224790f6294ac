package spool

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"promptspool/spool/rawlog"
)

// A segment is a file of events in a lane: those of one move. It is never changed. It
// appears under its name whole and fsynced, and a release replaces or removes it. Unlike
// a database, a plain file reports a full disk as an error, and damage stays where it is.
// Big-endian:
//
//	offset  bytes  field
//	     0      4  magic 'P' 'S' 'L' and format version 1
//	     4      4  count of events
//	     8      4  CRC32C of bytes 0 to 7
//	    12      -  the frames of the events (frame.go), one after the other
//
// What is framed is:
//
//	offset  bytes  field
//	     0      8  time of the move, unix nanoseconds
//	     8      2  length n of the reason
//	    10      n  reason
//	  10+n      -  the event's data
const (
	segmentMagic       = "PSL\x01"
	segmentHeaderBytes = 12
)

// segment is what the lanes keep in memory about a file.
type segment struct {
	path        string
	lane        Lane
	count       int
	first, last uint64 // the lowest and the highest sequence in it
	bytes       int64  // of disk, in whole blocks
}

// laneRef is the place of an event's frames in a segment.
type laneRef struct {
	key    eventKey // of the first frame; bytes is of the whole wrapped event
	offset int64
	end    int64
}

// laneEvent is a wrapped event on its way into a segment. A damaged one has raw, its
// frames as they are, instead of wrapped.
type laneEvent struct {
	key     eventKey
	wrapped []byte
	raw     []byte
}

func wrapLane(reason string, movedAt time.Time, e Entry) laneEvent {
	reason = reason[:min(len(reason), reasonBytesMax)]
	b := make([]byte, 0, 10+len(reason)+len(e.Data))
	b = binary.BigEndian.AppendUint64(b, uint64(movedAt.UnixNano()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	b = append(append(b, reason...), e.Data...)
	return laneEvent{key: eventKey{seq: e.Seq, key: e.Key, bytes: uint32(len(b)), at: e.At}, wrapped: b}
}

func unwrapLane(k eventKey, b []byte) (LaneEntry, error) {
	e := LaneEntry{Entry: Entry{Seq: k.seq, Key: k.key, At: k.at}}
	if len(b) < 10 || len(b) < 10+int(binary.BigEndian.Uint16(b[8:])) {
		return e, errFrame
	}

	n := 10 + int(binary.BigEndian.Uint16(b[8:]))
	e.Reason, e.Data = string(b[10:n]), b[n:]
	e.MovedAt = time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
	return e, nil
}

// frameCount returns how many frames an event of this many bytes needs in a segment. An
// empty event is one frame.
func frameCount(bytes int) int { return 1 + max(0, bytes-1)/framePart }

// writeSegment durably writes a file under path, replacing any that is there, and
// describes it.
func writeSegment(path string, lane Lane, events []laneEvent) (g segment, err error) {
	g = segment{path: path, lane: lane, count: len(events), first: events[0].key.seq}
	unfinished := filepath.Join(filepath.Dir(path), buildPrefix+filepath.Base(path))
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return g, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(unfinished)
		}
	}()

	// The errors of the writes are returned by Flush below.
	w := bufio.NewWriterSize(file, 64<<10)
	_, _ = w.Write(segmentHeader(len(events)))
	size := int64(segmentHeaderBytes)
	for _, e := range events {
		g.first, g.last = min(g.first, e.key.seq), max(g.last, e.key.seq)
		if e.raw != nil {
			_, _ = w.Write(e.raw)
			size += int64(len(e.raw))
			continue
		}

		f := frame{seq: e.key.seq, key: e.key.key, parts: uint16(frameCount(len(e.wrapped))), at: e.key.at}
		for ; f.part < f.parts; f.part++ {
			f.payload = e.wrapped[int(f.part)*framePart : min(int(f.part+1)*framePart, len(e.wrapped))]
			header := f.header()
			_, _ = w.Write(header[:])
			_, _ = w.Write(f.payload)
			size += int64(frameHeaderBytes + len(f.payload))
		}
	}
	g.bytes = wholeBlocks(size)

	// Synced before it gets its name, and the name synced after: a crash leaves the old
	// file or the new one, whole.
	if err := errors.Join(w.Flush(), file.Sync(), file.Close()); err != nil {
		return g, err
	}
	return g, errors.Join(os.Rename(unfinished, path), syncDir(filepath.Dir(path)))
}

func segmentHeader(count int) []byte {
	b := binary.BigEndian.AppendUint32([]byte(segmentMagic), uint32(count))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// segmentRefs finds the events of a segment by the headers of its frames, without reading
// payloads.
//
// It returns errFrame when the frames do not follow each other up to the end of the file,
// or when their number differs from the file's header.
func segmentRefs(file *os.File) ([]laneRef, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}

	r := bufio.NewReaderSize(file, 4<<10)
	header := make([]byte, segmentHeaderBytes)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, errFrame
	}
	sum := binary.BigEndian.Uint32(header[8:])
	if string(header[:4]) != segmentMagic || sum != crc32.Checksum(header[:8], castagnoli) {
		return nil, errFrame
	}

	var refs []laneRef
	b := make([]byte, frameHeaderBytes)
	for at := int64(segmentHeaderBytes); at < info.Size(); {
		if _, err := io.ReadFull(r, b); err != nil || string(b[:4]) != frameMagic {
			return nil, errFrame
		}

		// The header is not verified here, so its length may be anything.
		length := int64(binary.BigEndian.Uint32(b[30:]))
		if length > framePayloadMax || at+frameHeaderBytes+length > info.Size() {
			return nil, errFrame
		}
		if _, err := r.Discard(int(length)); err != nil {
			return nil, errFrame
		}

		next := at + frameHeaderBytes + length
		k := eventKey{
			seq:   binary.BigEndian.Uint64(b[14:]),
			part:  binary.BigEndian.Uint16(b[6:]),
			parts: binary.BigEndian.Uint16(b[8:]),
			key:   binary.BigEndian.Uint32(b[10:]),
			bytes: uint32(length),
			at:    time.Unix(0, int64(binary.BigEndian.Uint64(b[22:]))).UTC(),
		}

		// The parts of one event are next to each other.
		if k.part == 0 {
			refs = append(refs, laneRef{k, at, next})
		} else if n := len(refs) - 1; n < 0 || refs[n].key.seq != k.seq {
			return nil, errFrame
		} else {
			refs[n].key.bytes += k.bytes
			refs[n].end = next
		}
		at = next
	}

	if len(refs) != int(binary.BigEndian.Uint32(header[4:])) {
		return nil, errFrame
	}
	return refs, nil
}

// readLaneEvent reads and verifies the frames of one event.
func readLaneEvent(file *os.File, ref laneRef) (laneEvent, error) {
	b := make([]byte, ref.end-ref.offset)
	if _, err := file.ReadAt(b, ref.offset); err != nil {
		return laneEvent{key: ref.key}, err
	}

	e := laneEvent{key: ref.key, wrapped: make([]byte, 0, len(b))}
	for part := uint16(0); len(b) > 0; part++ {
		f, err := decodeFrame(b)
		if err != nil {
			return e, err
		}
		if f.seq != ref.key.seq || f.part != part || f.parts != ref.key.parts {
			return e, errFrame
		}

		e.wrapped = append(e.wrapped, f.payload...)
		b = b[frameHeaderBytes+len(f.payload):]
		if len(b) == 0 && part+1 != f.parts {
			return e, errFrame
		}
	}
	return e, nil
}

// rawLaneEvent reads the frames of an event as they are, without verifying them.
func rawLaneEvent(file *os.File, ref laneRef) (laneEvent, error) {
	e := laneEvent{key: ref.key, raw: make([]byte, ref.end-ref.offset)}
	_, err := file.ReadAt(e.raw, ref.offset)
	return e, err
}

// salvage finds the whole events of a damaged segment, and returns how many its header
// promises, or 0 if the header is damaged, too.
func salvage(path string) (events []laneEvent, promised int, err error) {
	err = rawlog.Map(path, func(data []byte, _ []rawlog.Span) error {
		events, promised, err = salvageFrom(path, data)
		return err
	})
	return events, promised, err
}

func salvageFrom(path string, data []byte) (events []laneEvent, promised int, err error) {
	if len(data) >= segmentHeaderBytes {
		count := int(binary.BigEndian.Uint32(data[4:]))
		if bytes.Equal(data[:segmentHeaderBytes], segmentHeader(count)) {
			promised = count
		}
	}

	// Look for every frame that verifies, wherever it is: the length of a damaged one
	// cannot be trusted to lead to the next.
	var open laneEvent
	parts := uint16(0) // of the open event
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte(frameMagic))
		if i < 0 {
			break
		}
		at += i

		f, err := decodeFrame(data[at:])
		if errors.Is(err, errFrameNewer) {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		if err != nil {
			at++
			continue
		}

		// An event counts when its last part follows all others. A part in between that
		// is damaged makes the rest of it useless.
		if f.part == 0 {
			open, parts = laneEvent{key: eventKey{seq: f.seq, parts: f.parts, key: f.key, at: f.at}}, 0
		}
		if f.seq == open.key.seq && f.part == parts {
			open.wrapped = append(open.wrapped, f.payload...)
			if parts++; parts == f.parts {
				open.key.bytes = uint32(len(open.wrapped))
				events = append(events, open)
			}
		}
		at += frameHeaderBytes + len(f.payload)
	}
	return slices.Clip(events), promised, nil
}
