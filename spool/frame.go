package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// A frame wraps every value that the spool gives to Badger. So a value can be proved
// whole without trusting Badger, and found in a raw file when Badger no longer returns
// it. Big-endian:
//
//	offset  bytes  field
//	     0      4  magic F5 'P' 'S' 'F' (F5 occurs in no UTF-8 text, so no payload of text looks like a frame)
//	     4      2  format version, 1
//	     6      2  index of this part
//	     8      2  number of parts of the event
//	    10      4  key number
//	    14      8  sequence
//	    22      8  time of the append, unix nanoseconds
//	    30      4  length of the payload
//	    34      4  CRC32C of bytes 0 to 33 and the payload
//	    38      -  payload
const (
	frameMagic       = "\xf5PSF"
	frameVersion     = 1
	frameHeaderBytes = 38
	framePayloadMax  = 4 << 20 // the most that is read; earlier versions split larger events at it
	framePart        = 1 << 20 // a larger event is split, because Badger makes several copies of a frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errFrame      = errors.New("frame does not verify")
	errFrameNewer = errors.New("frame was written by a newer promptspool; start that version again, or a later one")
)

// frame is one decoded frame. Its payload aliases what it was decoded from.
type frame struct {
	seq     uint64
	key     uint32
	part    uint16
	parts   uint16
	at      time.Time
	payload []byte
}

// header returns the bytes in front of the payload.
func (f *frame) header() (b [frameHeaderBytes]byte) {
	copy(b[:], frameMagic)
	binary.BigEndian.PutUint16(b[4:], frameVersion)
	binary.BigEndian.PutUint16(b[6:], f.part)
	binary.BigEndian.PutUint16(b[8:], f.parts)
	binary.BigEndian.PutUint32(b[10:], f.key)
	binary.BigEndian.PutUint64(b[14:], f.seq)
	binary.BigEndian.PutUint64(b[22:], uint64(f.at.UnixNano()))
	binary.BigEndian.PutUint32(b[30:], uint32(len(f.payload)))
	binary.BigEndian.PutUint32(b[34:], frameSum(b[:], f.payload))
	return b
}

// seal writes the header of a frame whose payload is already at b[frameHeaderBytes:].
func (f frame) seal(b []byte) {
	f.payload = b[frameHeaderBytes:]
	header := f.header()
	copy(b, header[:])
}

// decodeFrame reads the frame at the start of b, which may be longer. It returns
// errFrameNewer for a frame of a version that it does not know, and errFrame for anything
// else that is not one whole frame.
func decodeFrame(b []byte) (frame, error) {
	if len(b) < frameHeaderBytes || string(b[:4]) != frameMagic {
		return frame{}, errFrame
	}

	// Nothing is verified yet, so the length must be bounded before that much is read.
	version := binary.BigEndian.Uint16(b[4:])
	length := int64(binary.BigEndian.Uint32(b[30:]))
	verifies := false
	if length <= framePayloadMax && frameHeaderBytes+length <= int64(len(b)) {
		b = b[:frameHeaderBytes+length]
		verifies = binary.BigEndian.Uint32(b[34:]) == frameSum(b, b[frameHeaderBytes:])
	}

	// frameSum is computed as if the version were ours. So a frame with another version
	// that still verifies is one of ours in which a bit of the version flipped.
	switch {
	case version > frameVersion && !verifies:
		return frame{}, fmt.Errorf("%w (format %d, this version knows %d)", errFrameNewer, version, frameVersion)
	case version != frameVersion || !verifies:
		return frame{}, errFrame
	}

	f := frame{
		part:    binary.BigEndian.Uint16(b[6:]),
		parts:   binary.BigEndian.Uint16(b[8:]),
		key:     binary.BigEndian.Uint32(b[10:]),
		seq:     binary.BigEndian.Uint64(b[14:]),
		at:      time.Unix(0, int64(binary.BigEndian.Uint64(b[22:]))).UTC(),
		payload: b[frameHeaderBytes:],
	}
	if f.part >= f.parts {
		return frame{}, errFrame
	}
	return f, nil
}

// frameSum returns the checksum that a frame of this version has, whatever version the
// header names.
func frameSum(header, payload []byte) uint32 {
	known := [34]byte(header)
	binary.BigEndian.PutUint16(known[4:], frameVersion)
	return crc32.Update(crc32.Checksum(known[:], castagnoli), castagnoli, payload)
}

// eventKey is the key of a frame in Badger. It repeats what the spool has to know about
// every waiting event, so that walking the keys is enough to count, to prove the sequence
// and to acknowledge. Payloads are not read for that. Big-endian:
//
//	offset  bytes  field
//	     0      8  sequence
//	     8      2  index of this part
//	    10      2  number of parts
//	    12      4  key number
//	    16      4  bytes of the whole event
//	    20      8  time of the append, unix nanoseconds
type eventKey struct {
	seq   uint64
	part  uint16
	parts uint16
	key   uint32
	bytes uint32
	at    time.Time
}

const eventKeyBytes = 28

func (k eventKey) encode() []byte {
	b := make([]byte, 0, eventKeyBytes)
	b = binary.BigEndian.AppendUint64(b, k.seq)
	b = binary.BigEndian.AppendUint16(b, k.part)
	b = binary.BigEndian.AppendUint16(b, k.parts)
	b = binary.BigEndian.AppendUint32(b, k.key)
	b = binary.BigEndian.AppendUint32(b, k.bytes)
	return binary.BigEndian.AppendUint64(b, uint64(k.at.UnixNano()))
}

func decodeEventKey(b []byte) (eventKey, bool) {
	if len(b) != eventKeyBytes {
		return eventKey{}, false
	}
	return eventKey{
		seq:   binary.BigEndian.Uint64(b),
		part:  binary.BigEndian.Uint16(b[8:]),
		parts: binary.BigEndian.Uint16(b[10:]),
		key:   binary.BigEndian.Uint32(b[12:]),
		bytes: binary.BigEndian.Uint32(b[16:]),
		at:    time.Unix(0, int64(binary.BigEndian.Uint64(b[20:]))).UTC(),
	}, true
}

// seekKey returns the prefix of the keys of all frames of a sequence.
func seekKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, seq)
}
