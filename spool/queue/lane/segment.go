package lane

import (
	"bufio"
	"bytes"
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
	key    frame.EventKey // of the first frame
	offset int64
	end    int64
}

// event is an event with its frames as they are in a segment. They may be damaged.
type event struct {
	key    frame.EventKey // of the first frame
	frames []byte
}

// wrap frames an event that is moved.
func wrap(movedAt time.Time, e Entry) event {
	// The reason is the server's text, of any length; its length field has 16 bits.
	reason := e.Reason[:min(len(e.Reason), reasonBytesMax)]
	head := binary.BigEndian.AppendUint64(nil, uint64(movedAt.UnixNano()))
	head = binary.BigEndian.AppendUint16(head, uint16(len(reason)))
	head = append(head, reason...)

	content := io.MultiReader(bytes.NewReader(head), bytes.NewReader(e.Data))
	size := len(head) + len(e.Data)
	k := frame.EventKey{Seq: e.Seq, Parts: uint16(1 + (size-1)/frame.PartBytes), Key: e.Key, At: e.At}

	// A large event is copied once, into its frames.
	frames := make([]byte, size+int(k.Parts)*frame.HeaderBytes)
	f := frame.Frame{EventKey: k}
	for b := frames; len(b) > 0; f.Part++ {
		n := min(len(b), frame.HeaderBytes+frame.PartBytes)
		// Readers of memory do not fail.
		_, _ = io.ReadFull(content, b[frame.HeaderBytes:n])
		f.Seal(b[:n])
		b = b[n:]
	}
	return event{k, frames}
}

// unwrap verifies the frames and returns what was moved. After an error, the entry has at
// least its sequence and key.
func (e event) unwrap(limited bool) (Entry, error) {
	entry := Entry{Entry: frame.Entry{Seq: e.key.Seq, Key: e.key.Key, At: e.key.At}, AtLimit: limited}
	content, err := e.content()
	if err != nil {
		return entry, err
	}
	if len(content) < 10 || len(content) < 10+int(binary.BigEndian.Uint16(content[8:])) {
		return entry, frame.ErrDamaged
	}

	n := 10 + int(binary.BigEndian.Uint16(content[8:]))
	entry.Reason, entry.Data = string(content[10:n]), content[n:]
	entry.MovedAt = time.Unix(0, int64(binary.BigEndian.Uint64(content))).UTC()
	return entry, nil
}

// content verifies the frames, and returns what they hold.
func (e event) content() ([]byte, error) {
	// That each frame verifies is not enough: they must be those of this event, in order,
	// and all of them.
	content := make([]byte, 0, len(e.frames))
	part := uint16(0)
	for b := e.frames; len(b) > 0; part++ {
		f, err := frame.Decode(b)
		if err != nil {
			return nil, err
		}
		if f.Seq != e.key.Seq || f.Part != part || f.Parts != e.key.Parts {
			return nil, frame.ErrDamaged
		}

		content = append(content, f.Payload...)
		b = b[frame.HeaderBytes+len(f.Payload):]
	}

	if part != e.key.Parts {
		return nil, frame.ErrDamaged
	}
	return content, nil
}

// writeSegment durably writes a file under path, replacing any that is there, and
// describes it.
func writeSegment(path string, k kind, events []event) (g segment, err error) {
	g = segment{
		kind:  k,
		path:  path,
		key:   events[0].key.Key,
		count: len(events),
		first: events[0].key.Seq,
		bytes: segmentSize(events),
	}
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
	for _, e := range events {
		g.first, g.last = min(g.first, e.key.Seq), max(g.last, e.key.Seq)
		_, _ = w.Write(e.frames)
	}

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
			refs[n].end = next
		}
		at = next
	}

	if len(refs) != int(binary.BigEndian.Uint32(header[4:])) {
		return nil, frame.ErrDamaged
	}
	return refs, nil
}

// readEvent reads the frames of an event, without verifying them.
func readEvent(file io.ReaderAt, ref eventRef) (event, error) {
	e := event{ref.key, make([]byte, ref.end-ref.offset)}
	_, err := file.ReadAt(e.frames, ref.offset)
	return e, err
}
