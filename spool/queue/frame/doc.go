// Package frame is the format of one event on the disk, in generations and in lanes.
//
// It does no I/O. Everything in it is safe for concurrent use, because nothing is shared.
package frame

import "time"

// Entry is one event as the spool stores it.
type Entry struct {
	Seq  uint64    // its place in the order of all events; starts at 1, without gaps
	Key  uint32    // the number of the key that it came with
	At   time.Time // when it was appended, UTC
	Data []byte    // owned by the receiver
}

// Range is the sequences From <= s < End.
type Range struct{ From, End uint64 }
