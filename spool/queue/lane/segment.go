package lane

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"promptspool/spool/disk"
	"promptspool/spool/queue/frame"
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
//	    12      -  the frames of the events (package frame), one after the other
//
// The framed content is:
//
//	offset  bytes  field
//	     0      8  time of the move, unix nanoseconds
//	     8      2  length n of the reason
//	    10      n  reason
//	  10+n      -  the event's data
const (
	segmentMagic       = "PSL\x01"
	segmentHeaderBytes = 12

	// unfinishedPrefix marks a file that is being written. Open removes it.
	unfinishedPrefix = ".build-"
)

// kind is what the events of a segment have in common. It is in the file's name.
type kind struct {
	lane    Lane
	limited bool // the record of each is at a limit, so they may be dropped; see limited.go
}

var kinds = []kind{{Held, false}, {Dead, false}, {Dead, true}}

// String returns what the names of the files begin with.
func (k kind) String() string {
	if k.limited {
		return "limit"
	}
	return k.lane.String()
}

// segment is what the lanes keep in memory about a file.
type segment struct {
	kind
	path        string
	key         uint32 // of its events, which are of one key if they are limited
	count       int
	first, last uint64 // the lowest and the highest sequence in it
	bytes       int64  // of disk, in full blocks
}

// eventRef is the place of an event's frames in a segment.
type eventRef struct {
	key    frame.EventKey // of the first frame; Bytes is of the whole wrapped event
	offset int64
	end    int64
}

// event is a wrapped event on its way into a segment. A damaged one has raw, its frames
// as they are, instead of wrapped.
type event struct {
	key     frame.EventKey
	wrapped []byte
	raw     []byte
}

func wrap(movedAt time.Time, e Entry) event {
	// The reason is the server's text, of any length; its length field has 16 bits.
	reason := e.Reason[:min(len(e.Reason), reasonBytesMax)]
	b := make([]byte, 0, 10+len(reason)+len(e.Data))
	b = binary.BigEndian.AppendUint64(b, uint64(movedAt.UnixNano()))
	b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
	b = append(append(b, reason...), e.Data...)
	return event{key: frame.EventKey{Seq: e.Seq, Key: e.Key, Bytes: uint32(len(b)), At: e.At}, wrapped: b}
}

func unwrap(k frame.EventKey, b []byte, limited bool) (Entry, error) {
	e := Entry{Entry: frame.Entry{Seq: k.Seq, Key: k.Key, At: k.At}, AtLimit: limited}
	if len(b) < 10 || len(b) < 10+int(binary.BigEndian.Uint16(b[8:])) {
		return e, frame.ErrDamaged
	}

	n := 10 + int(binary.BigEndian.Uint16(b[8:]))
	e.Reason, e.Data = string(b[10:n]), b[n:]
	e.MovedAt = time.Unix(0, int64(binary.BigEndian.Uint64(b))).UTC()
	return e, nil
}

// frameCount returns how many frames an event of this many bytes needs in a segment. An
// empty event is one frame.
func frameCount(bytes int) int { return 1 + max(0, bytes-1)/frame.PartBytes }

// writeSegment durably writes a file under path, replacing any that is there, and
// describes it.
func writeSegment(path string, k kind, events []event) (g segment, err error) {
	g = segment{kind: k, path: path, key: events[0].key.Key, count: len(events), first: events[0].key.Seq}
	unfinished := filepath.Join(filepath.Dir(path), unfinishedPrefix+filepath.Base(path))
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return g, err
	}
	defer func() {
		if err != nil {
			_ = disk.Remove(unfinished)
		}
	}()

	// The errors of the writes are returned by Flush below.
	w := bufio.NewWriterSize(file, 64<<10)
	_, _ = w.Write(segmentHeader(len(events)))
	size := int64(segmentHeaderBytes)
	for _, e := range events {
		g.first, g.last = min(g.first, e.key.Seq), max(g.last, e.key.Seq)
		if e.raw != nil {
			_, _ = w.Write(e.raw)
			size += int64(len(e.raw))
			continue
		}

		f := frame.Frame{EventKey: e.key}
		f.Parts = uint16(frameCount(len(e.wrapped)))
		for ; f.Part < f.Parts; f.Part++ {
			f.Payload = e.wrapped[int(f.Part)*frame.PartBytes : min(int(f.Part+1)*frame.PartBytes, len(e.wrapped))]
			header := f.Header()
			_, _ = w.Write(header[:])
			_, _ = w.Write(f.Payload)
			size += int64(frame.HeaderBytes + len(f.Payload))
		}
	}
	g.bytes = disk.WholeBlocks(size)

	// Synced before it gets its name, and the name synced after: a crash leaves the old
	// file or the new one, whole.
	if err := errors.Join(w.Flush(), file.Sync(), file.Close()); err != nil {
		return g, err
	}
	return g, errors.Join(disk.Rename(unfinished, path), disk.SyncDir(filepath.Dir(path)))
}

func segmentHeader(count int) []byte {
	b := binary.BigEndian.AppendUint32([]byte(segmentMagic), uint32(count))
	return binary.BigEndian.AppendUint32(b, disk.Checksum(b))
}

// openSegment opens a file and finds the events in it. Close the file afterwards.
func openSegment(path string) (file disk.Snapshot, refs []eventRef, err error) {
	file, err = disk.OpenSnapshot(path)
	if err != nil {
		return file, nil, err
	}
	refs, err = segmentRefs(file.SectionReader)
	if err != nil {
		return file, nil, errors.Join(err, file.Close())
	}
	return file, refs, nil
}

// segmentRefs finds the events of a segment by the headers of its frames, without reading
// payloads.
//
// It returns frame.ErrDamaged when the frames do not follow each other up to the end of the file,
// or when their number differs from the file's header.
func segmentRefs(file *io.SectionReader) ([]eventRef, error) {
	r := bufio.NewReaderSize(file, 4<<10)
	header := make([]byte, segmentHeaderBytes)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, frame.ErrDamaged
	}
	sum := binary.BigEndian.Uint32(header[8:])
	if string(header[:4]) != segmentMagic || sum != disk.Checksum(header[:8]) {
		return nil, frame.ErrDamaged
	}

	var refs []eventRef
	b := make([]byte, frame.HeaderBytes)
	for at := int64(segmentHeaderBytes); at < file.Size(); {
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, frame.ErrDamaged
		}
		k, ok := frame.Peek(b)
		if !ok {
			return nil, frame.ErrDamaged
		}

		// The header is not verified here, so its length may be anything.
		next := at + frame.HeaderBytes + int64(k.Bytes)
		if k.Bytes > frame.PartBytes || next > file.Size() {
			return nil, frame.ErrDamaged
		}
		if _, err := r.Discard(int(k.Bytes)); err != nil {
			return nil, frame.ErrDamaged
		}

		// The parts of one event are next to each other.
		if k.Part == 0 {
			refs = append(refs, eventRef{k, at, next})
		} else if n := len(refs) - 1; n < 0 || refs[n].key.Seq != k.Seq {
			return nil, frame.ErrDamaged
		} else {
			refs[n].key.Bytes += k.Bytes
			refs[n].end = next
		}
		at = next
	}

	if len(refs) != int(binary.BigEndian.Uint32(header[4:])) {
		return nil, frame.ErrDamaged
	}
	return refs, nil
}

// readEvent reads and verifies the frames of one event, and returns what they hold.
func readEvent(file io.ReaderAt, ref eventRef) (wrapped []byte, err error) {
	b := make([]byte, ref.end-ref.offset)
	if _, err := file.ReadAt(b, ref.offset); err != nil {
		return nil, err
	}

	// That each frame verifies is not enough: they must be those of this event, in order,
	// and all of them.
	wrapped = make([]byte, 0, len(b))
	for part := uint16(0); len(b) > 0; part++ {
		f, err := frame.Decode(b)
		if err != nil {
			return nil, err
		}
		if f.Seq != ref.key.Seq || f.Part != part || f.Parts != ref.key.Parts {
			return nil, frame.ErrDamaged
		}

		wrapped = append(wrapped, f.Payload...)
		b = b[frame.HeaderBytes+len(f.Payload):]
		if len(b) == 0 && part+1 != f.Parts {
			return nil, frame.ErrDamaged
		}
	}
	return wrapped, nil
}

// rawEvent reads the frames of an event as they are, without verifying them.
func rawEvent(file io.ReaderAt, ref eventRef) (event, error) {
	e := event{key: ref.key, raw: make([]byte, ref.end-ref.offset)}
	_, err := file.ReadAt(e.raw, ref.offset)
	return e, err
}
