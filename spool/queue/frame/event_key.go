package frame

import (
	"encoding/binary"
	"time"
)

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
