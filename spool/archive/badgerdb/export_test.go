package badgerdb

// PackEagerly makes blocks of a few rows, as soon as there are any, so that small scenes meet all of them. Some rows, and some
// states, are too heavy to be together.
func (db *DB) PackEagerly() {
	db.packing = packing{every: 3, newest: 1, step: 2, inBlock: 2, rows: 5, bytes: 1500}
	db.heldBytesMax = 3000
}

// RememberUnseen bounds the tombstones of records that were not there.
func (db *DB) RememberUnseen(max int) { db.unseenMax = int64(max) }
