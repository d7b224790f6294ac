package badgerdb

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// PackEagerly makes small blocks as soon as possible, so that small tests reach every case.
// Some rows and states are too heavy to share a block, and all states have deltas.
func (db *DB) PackEagerly() {
	db.packing = packing{every: 3, newest: 1, step: 2, inBlock: 2, blocks: 2, rows: 5, bytes: 1500}
	db.heldBytesMax, db.deltaMin = 3000, 1
}

// CloseWithin sets how long closing a database that failed may take.
func CloseWithin(d time.Duration) { closePatience = d }

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

// AgeBlocks makes each block one of before: of another folding, whose index has no word that today's has, and
// with a summary that counts no failed calls without tokens.
func (db *DB) AgeBlocks(t *testing.T) {
	t.Helper()
	first := func(b *block) []byte {
		var rows []wire.Row
		for i := range b.Head.Rows {
			row, err := b.Row(i, rowcode.AllColumns)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, rowcode.Clone(row))
			if row.InputTokens == nil && row.Status == "ERROR" {
				rows[i].Status = "WARNING"
			}
		}
		return query.Summarize(len(rows), func(i int) *wire.Row { return &rows[i] })
	}
	err := db.exclusively(func(txn *badger.Txn) (writes []write, err error) {
		err = eachAccount(txn, func(k keys) error {
			return db.each(t.Context(), txn, k.table(tableBlock), nil, func(key, value []byte) (bool, error) {
				head, err := blocks.DecodeHead(value)
				b := block{txn: txn, codec: db.codec, keys: k}
				b.open(bytes.Clone(key[len(key)-blocks.PlaceBytes:]), head)
				head.Folding--
				writes = append(writes, write{bytes.Clone(key), head.Encode()},
					write{k.part(b.Place, blocks.Summary), compress.Plain(first(&b))})
				for page := range textindex.Pages {
					writes = append(writes, write{k.words(page, b.Place), compress.Plain(nil)})
				}
				return true, err
			})
		})
		return writes, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Renew makes again what is of before.
func (db *DB) Renew(ctx context.Context) { db.renew(ctx) }

// Lists of sessions are walked by two from the second time on, however short they are.
func init() { passedEvery = 1 }

// PackBodies packs the bodies that wait against each other, if only they save anything at all.
func (db *DB) PackBodies(ctx context.Context) error {
	db.packer.Use(repack.Rule{Largest: 1 << 20, Most: 1e9})
	return db.packer.PackAll(ctx)
}

// PackLater packs the bodies that are due after a while.
func (db *DB) PackLater(ctx context.Context, after time.Duration) error {
	now := db.now
	db.now = func() time.Time { return now().Add(after) }
	// The second time, calls that were found to be alone.
	return errors.Join(db.packer.Pack(ctx), db.packer.Pack(ctx))
}

// Tidy does what Run does every ten minutes.
func (db *DB) Tidy(ctx context.Context) { db.tidy(ctx) }

// BodyBytes returns how many bytes the bodies take, with what lists their dependants.
func (db *DB) BodyBytes() (bytes int64) {
	_ = db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			for _, table := range []byte{tableBody, tableBase} {
				it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(table)})
				for it.Rewind(); it.Valid(); it.Next() {
					bytes += it.Item().ValueSize()
				}
				it.Close()
			}
			return nil
		})
	})
	return bytes
}
