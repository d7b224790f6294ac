package archive

import (
	"time"

	"promptspool/api/wire"
)

// Retention bounds what a Store keeps of each account. Zero values keep everything.
type Retention struct {
	Age   time.Duration // records whose order time is older are deleted, and so are orphans
	Bytes int64         // of bodies as they were sent; beyond it the oldest records are deleted
}

// Size is how much a Store holds.
type Size struct {
	Records   uint64 // of all accounts
	Bytes     uint64 // of their events' bodies, as they were sent
	DiskBytes int64  // blocks that the files occupy

	// Tombstones counts deleted records and metadata values that are rejected for good. A
	// deletion counts once it is durable.
	Tombstones int64

	// Unpacked counts the rows written since the last packing. Those from before a start
	// do not count.
	Unpacked int
}

// UnseenMax bounds an account's tombstones for records that it did not have when
// they were deleted. Made-up ids would fill the disk. What was written bounds
// the other tombstones.
const UnseenMax = 100_000

// ErrUnseen rejects the deletion of an unknown record when no more of these can be
// remembered. Earlier deletions are kept, so what was deleted stays deleted.
func ErrUnseen(max int) error {
	return wire.Errorf(wire.CodeTooLarge, "Nothing was deleted: no request with this id is stored, and "+
		"this account has already deleted %d ids before their requests arrived, the most that are "+
		"remembered. Stored requests can still be deleted. To delete requests that arrive later, delete "+
		"by a metadata value.", max)
}
