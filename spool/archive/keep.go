package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Retention says what a Store keeps of each account. Zero values keep everything.
type Retention struct {
	Age   time.Duration // records whose order time is older go, and so do orphans
	Bytes int64         // of bodies as they were sent; beyond it the oldest records go
}

// Size is how much a Store holds.
type Size struct {
	Records   uint64 // of all accounts
	Bytes     uint64 // of their events' bodies, as they were sent
	DiskBytes int64  // blocks that the files occupy

	// Tombstones are deleted records and metadata values that are kept out for ever. A deletion counts when it is durable.
	Tombstones int64
	Unpacked   int // rows of the list that were written since the last packing; those of before a start do not count
}

// HashValue is what a tombstone of a metadata value keeps of it. It does not tell the value: somebody asked to be forgotten. Every
// Store uses this one, so that tombstones can move from one to another.
func HashValue(name, value string) [16]byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(name))))
	h.Write([]byte(name))
	h.Write([]byte(value))
	return [16]byte(h.Sum(nil))
}
