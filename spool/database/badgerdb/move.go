package badgerdb

import (
	"bytes"
	"context"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// errTime is for a tombstone that holds no time.
var errTime = errors.New("it is not a time")

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return smallValues{db} }

// IDs returns ids of records; see archive.Store.
func (db *DB) IDs(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		before := uuid(bytes.Repeat([]byte{0xff}, len(uuid{})))
		if after != "" {
			var ok bool
			if before, ok = parseUUID(after); !ok {
				return archive.BadID(after)
			}
		}

		it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableRecord), Reverse: true})
		defer it.Close()
		for it.Seek(k.record(before)); it.Valid() && len(ids) < limit; it.Next() {
			if _, _, id := accountOf(it.Item().Key()); uuid(id) != before {
				ids = append(ids, uuid(id).String())
			}
		}
		return db.stopped(ctx)
	})

	return ids, err
}

// Known returns the ids of all accounts; see transfer.Mover.
func (db *DB) Known(ctx context.Context) ([]string, error) { return db.Accounts(ctx) }

// Tombstones returns tombstones in the order of their keys; see transfer.Mover.
func (db *DB) Tombstones(
	ctx context.Context, account string, after transfer.Tombstone, limit int,
) (page []transfer.Tombstone, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		var last []byte
		if after != (transfer.Tombstone{}) {
			last = append(k.bury(after).key, 0)
		}
		for _, table := range []byte{tableTombstone, tableSelector} {
			from := k.table(table)
			if bytes.Compare(from, last) < 0 {
				from = last // if that is in another table, there is nothing in this one after it
			}
			err := db.each(ctx, txn, k.table(table), from, func(key, value []byte) (bool, error) {
				if len(page) == limit {
					return false, nil
				}
				at, ok := readTime(value)
				if !ok {
					return false, damaged(key, errTime)
				}
				page = append(page, transfer.Tombstone{
					OfValue: table == tableSelector,
					Key:     [16]byte(key[len(key)-16:]),
					At:      at,
					Unseen:  len(value) > tombstoneBytes,
				})
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})

	return page, err
}

// bury returns the write of a tombstone.
func (k keys) bury(t transfer.Tombstone) write {
	if t.OfValue {
		return write{k.selector(t.Key), appendTime(nil, t.At)}
	}
	return write{k.tombstone(t.Key), tombstoneOf(t.At, t.Unseen)}
}

// Bury stores tombstones; see transfer.Mover.
func (db *DB) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	k, err := keysOf(account)
	if err != nil {
		return err
	}

	added := int64(0)
	err = db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		added = 0
		for _, t := range tombstones {
			w := k.bury(t)
			there, err := loadBytes(txn, w.key)
			if err != nil {
				return nil, err
			}
			if there == nil {
				added++
			}
			writes = append(writes, w)
		}

		db.buries.Store(true)
		// Those in memory do not know yet of deletions in the other database.
		delete(db.selectors, k)
		return writes, nil
	})
	if err == nil {
		db.tombstones.Add(added)
	}

	return err
}
