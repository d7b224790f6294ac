package badgerdb

import (
	"encoding/binary"
	"time"
)

// goneRow is the value of a row that was deleted and still stands in a block: it hides that one.
var goneRow = []byte{0}

// mark is the value of the two keys that stand where a block begins, among the rows that stand alone. Behind them lie only rows
// that were packed, which Badger has to pass over one by one until it has compacted them away: an iterator that looks one
// key ahead never comes there.
var mark = []byte{1}

// rowPlace reads the time and the id out of a row's key, or of what follows the table in it.
func rowPlace(key []byte) (at time.Time, id uuid) {
	key = key[len(key)-placeBytes:]
	at = time.Unix(int64(^binary.BigEndian.Uint64(key)^1<<63), int64(^binary.BigEndian.Uint32(key[8:]))).UTC()
	for i := range id {
		id[i] = ^key[12+i]
	}
	return at, id
}

// placeBytes is the length of time and id in a key.
const placeBytes = 12 + 16
