package badgerdb

// PackEagerly makes blocks of a few rows, as soon as there are any, so that small scenes meet all of them.
func (db *DB) PackEagerly() { db.packing = packing{every: 3, newest: 1, step: 2, inBlock: 2, rows: 5} }

// RememberUnseen bounds the tombstones of records that were not there.
func (db *DB) RememberUnseen(max int) { db.unseenMax = int64(max) }
