package badgerdb

import (
	"encoding/binary"
	"time"
)

// goneRow is the value of a row that was deleted but is still in a block: it hides that one.
var goneRow = []byte{0}

// mark is the value of the two keys where the first block begins, among the rows that stand alone.
// Behind them are only Badger's tombstones of packed rows, which a walk has to pass one by one
// until Badger has compacted them away. An iterator reads one key ahead, so with two marks it
// never gets there.
var mark = []byte{1}

// rowPlace reads the time and the id from a row's key, or from a place.
func rowPlace(key []byte) (at time.Time, id uuid) {
	key = key[len(key)-placeBytes:]

	seconds := int64(^binary.BigEndian.Uint64(key) ^ 1<<63)
	at = time.Unix(seconds, int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// placeBytes is the length of a place: time and id.
const placeBytes = 12 + 16
