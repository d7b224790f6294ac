package archive

import (
	"time"

	"promptspool/api/wire"
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

// UnseenMax bounds the tombstones of an account for records that were not there when they were deleted: made-up ids would
// fill the disk. Those of records that were there are bounded by what was written.
const UnseenMax = 100_000

// ErrUnseen refuses to delete a record that is not there, when no more such deletions can be remembered. Those that were
// answered before stay, so what was deleted stays deleted.
func ErrUnseen(max int) error {
	return wire.Errorf(wire.CodeTooLarge, "Nothing was deleted: no request with this id is stored, and this account has already deleted %d "+
		"ids before their requests arrived, the most that are remembered. Requests that are stored can still be deleted. "+
		"To delete requests that arrive later, delete by a metadata value.", max)
}
