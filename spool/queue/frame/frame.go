// Package frame is the format of one event on the disk, in generations and in lanes.
//
// It does no I/O. Everything in it is safe for concurrent use, because nothing is shared.
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"iter"
	"time"
)

// Entry is one event as the spool stores it.
type Entry struct {
	Seq  uint64    // its place in the order of all events; starts at 1, without gaps
	Key  uint32    // the number of the key that it came with
	At   time.Time // when it was appended, UTC
	Data []byte    // owned by the receiver
}

// Range is the sequences From <= s < End.
type Range struct{ From, End uint64 }

// Tally is a number of events and their bytes.
type Tally struct {
	Events int
	Bytes  int64
}

// Usage adds up events, in all and by key number. Its zero value is empty. It holds only
// keys that have events.
type Usage struct {
	Tally
	Keys map[uint32]Tally
}

// Add counts events of a key, or counts them no longer if the numbers are negative.
func (u *Usage) Add(key uint32, events int, bytes int64) {
	if u.Keys == nil {
		u.Keys = make(map[uint32]Tally)
	}
	u.Events += events
	u.Bytes += bytes

	t := u.Keys[key]
	t.Events += events
	t.Bytes += bytes
	u.Keys[key] = t
	// A key that stayed here would never be forgotten.
	if t.Events == 0 {
		delete(u.Keys, key)
	}
}

// AddAll adds the events of another Usage so many times; -1 subtracts them.
func (u *Usage) AddAll(v Usage, times int) {
	for key, t := range v.Keys {
		u.Add(key, times*t.Events, int64(times)*t.Bytes)
	}
}

// A frame wraps every value that the spool gives to Badger. So a value can be proved
// whole without trusting Badger, and found in a raw file when Badger no longer returns
// it. Big-endian:
//
//	offset  bytes  field
//	     0      4  magic F5 'P' 'S' 'F' (F5 occurs in no UTF-8 text, so no payload of text looks like a frame)
//	     4      2  1, for the format of the spool
//	     6      2  index of this part
//	     8      2  number of parts of the event
//	    10      4  key number
//	    14      8  sequence
//	    22      8  time of the append, unix nanoseconds
//	    30      4  length of the payload
//	    34      4  CRC32C of bytes 0 to 33 and the payload
//	    38      -  payload
const (
	// Magic is how every frame begins.
	Magic = "\xf5PSF"
	// HeaderBytes is the length of what is in front of a payload.
	HeaderBytes = 38
	// PartBytes is the largest payload. A larger event is split, because
	// Badger makes several copies of a frame.
	PartBytes = 1 << 20

	formatVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged means that the bytes are not one whole frame.
var ErrDamaged = errors.New("frame does not verify")

// Frame is one frame. Bytes of its key is the length of the payload. The payload of a
// decoded one aliases what it was decoded from.
type Frame struct {
	EventKey
	Payload []byte
}

// Header returns the bytes in front of the payload.
func (f *Frame) Header() (b [HeaderBytes]byte) {
	f.putHeader(b[:])
	return b
}

// Seal writes the header of a frame whose payload is already at b[HeaderBytes:].
func (f Frame) Seal(b []byte) {
	f.Payload = b[HeaderBytes:]
	f.putHeader(b)
}

func (f *Frame) putHeader(b []byte) {
	copy(b, Magic)
	binary.BigEndian.PutUint16(b[4:], formatVersion)
	binary.BigEndian.PutUint16(b[6:], f.Part)
	binary.BigEndian.PutUint16(b[8:], f.Parts)
	binary.BigEndian.PutUint32(b[10:], f.Key)
	binary.BigEndian.PutUint64(b[14:], f.Seq)
	binary.BigEndian.PutUint64(b[22:], uint64(f.At.UnixNano()))
	binary.BigEndian.PutUint32(b[30:], uint32(len(f.Payload)))
	binary.BigEndian.PutUint32(b[34:], checksum(b, f.Payload))
}

// Decode reads the frame at the start of b, which may be longer. The payload aliases b.
//
// It returns ErrDamaged for anything that is not one whole frame.
func Decode(b []byte) (Frame, error) {
	if len(b) < HeaderBytes {
		return Frame{}, ErrDamaged
	}
	k, ok := Peek(b)

	// Nothing is verified yet, so the length must be bounded before that much is read.
	length := int64(k.Bytes)
	if !ok || length > PartBytes || HeaderBytes+length > int64(len(b)) {
		return Frame{}, ErrDamaged
	}
	b = b[:HeaderBytes+length]
	if binary.BigEndian.Uint16(b[4:]) != formatVersion ||
		binary.BigEndian.Uint32(b[34:]) != checksum(b, b[HeaderBytes:]) {
		return Frame{}, ErrDamaged
	}

	// It verifies, but was never made by us: its event could not be put together.
	if k.Part >= k.Parts {
		return Frame{}, ErrDamaged
	}
	return Frame{k, b[HeaderBytes:]}, nil
}

// All yields every whole frame in data, wherever it is, with its offset.
//
// The length of a damaged frame cannot be trusted to lead to the next.
func All(data []byte) iter.Seq2[int, Frame] {
	return func(yield func(int, Frame) bool) {
		for at := 0; ; {
			i := bytes.Index(data[at:], []byte(Magic))
			if i < 0 {
				return
			}
			at += i

			f, err := Decode(data[at:])
			if err != nil {
				// The magic may be part of a payload.
				at++
				continue
			}
			if !yield(at, f) {
				return
			}
			at += HeaderBytes + len(f.Payload)
		}
	}
}

// Peek reads a header without verifying it, so that payloads can be skipped. Bytes of the
// key is the length of this frame's payload, and may be anything.
//
// The header must have HeaderBytes. Peek reports false for one without the magic.
func Peek(header []byte) (EventKey, bool) {
	if string(header[:4]) != Magic {
		return EventKey{}, false
	}

	return EventKey{
		Seq:   binary.BigEndian.Uint64(header[14:]),
		Part:  binary.BigEndian.Uint16(header[6:]),
		Parts: binary.BigEndian.Uint16(header[8:]),
		Key:   binary.BigEndian.Uint32(header[10:]),
		Bytes: binary.BigEndian.Uint32(header[30:]),
		At:    time.Unix(0, int64(binary.BigEndian.Uint64(header[22:]))).UTC(),
	}, true
}

// checksum returns the checksum of a frame.
func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header[:34], castagnoli), castagnoli, payload)
}

// EventKey is the key of a frame in Badger.
//
// It repeats what the spool has to know about every waiting event, so that walking the
// keys is enough to count, to prove the sequence and to acknowledge. Payloads are not
// read for that. Big-endian:
//
//	offset  bytes  field
//	     0      8  sequence
//	     8      2  index of this part
//	    10      2  number of parts
//	    12      4  key number
//	    16      4  bytes of the whole event
//	    20      8  time of the append, unix nanoseconds
type EventKey struct {
	Seq   uint64
	Part  uint16
	Parts uint16
	Key   uint32
	Bytes uint32
	At    time.Time
}

const eventKeyBytes = 28

// Encode returns the key as Badger sorts it: by sequence, then by part.
func (k EventKey) Encode() []byte {
	b := make([]byte, 0, eventKeyBytes)
	b = binary.BigEndian.AppendUint64(b, k.Seq)
	b = binary.BigEndian.AppendUint16(b, k.Part)
	b = binary.BigEndian.AppendUint16(b, k.Parts)
	b = binary.BigEndian.AppendUint32(b, k.Key)
	b = binary.BigEndian.AppendUint32(b, k.Bytes)
	return binary.BigEndian.AppendUint64(b, uint64(k.At.UnixNano()))
}

// DecodeEventKey returns the key in b, and reports whether b has the length of one.
func DecodeEventKey(b []byte) (EventKey, bool) {
	// Badger has its own keys, such as the mark at the end of a transaction.
	if len(b) != eventKeyBytes {
		return EventKey{}, false
	}
	return EventKey{
		Seq:   binary.BigEndian.Uint64(b),
		Part:  binary.BigEndian.Uint16(b[8:]),
		Parts: binary.BigEndian.Uint16(b[10:]),
		Key:   binary.BigEndian.Uint32(b[12:]),
		Bytes: binary.BigEndian.Uint32(b[16:]),
		At:    time.Unix(0, int64(binary.BigEndian.Uint64(b[20:]))).UTC(),
	}, true
}

// SeekKey returns the prefix of the keys of all frames of a sequence.
func SeekKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, seq)
}
