package badgerdb

import (
	"bytes"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/compress"
)

// PackEagerly makes small blocks as soon as possible, so that small tests reach every case.
// Some rows and states are too heavy to share a block, and all states have deltas.
func (db *DB) PackEagerly() {
	db.packing = packing{every: 3, newest: 1, step: 2, inBlock: 2, blocks: 2, rows: 5, bytes: 1500}
	db.heldBytesMax, db.deltaMin = 3000, 1
}

// CloseWithin sets how long closing a database that failed may take.
func CloseWithin(d time.Duration) { closePatience = d }

// RememberUnseen bounds the tombstones of records that did not exist.
func (db *DB) RememberUnseen(max int) { db.unseenMax = int64(max) }

// DeltasFrom sets the size from which a record gets deltas.
func (db *DB) DeltasFrom(bytes int) { db.deltaMin = bytes }

// Written returns how many bytes were ever written, as long as no table has been compacted.
func (db *DB) Written() (bytes int64) {
	_ = db.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{AllVersions: true})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			bytes += it.Item().KeySize() + it.Item().ValueSize()
		}
		return nil
	})

	return bytes
}

// WithoutWords runs fn while the index of words of every block is empty.
func (db *DB) WithoutWords(t *testing.T, fn func()) {
	t.Helper()
	var before []write
	err := db.exclusively(func(txn *badger.Txn) (writes []write, err error) {
		err = eachAccount(txn, func(k keys) error {
			return db.each(t.Context(), txn, k.table(tableWords), nil, func(key, value []byte) (bool, error) {
				before = append(before, write{bytes.Clone(key), bytes.Clone(value)})
				writes = append(writes, write{bytes.Clone(key), compress.Plain(nil)})
				return true, nil
			})
		})
		return writes, err
	})
	if err == nil {
		fn()
		err = db.exclusively(func(*badger.Txn) ([]write, error) { return before, nil })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Lists of sessions are walked by two from the second time on, however short they are.
func init() { passedEvery = 1 }
