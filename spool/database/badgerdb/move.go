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

// IDs returns ids of records; see transfer.Mover.
func (db *DB) IDs(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		var from []byte
		if after != "" {
			id, ok := parseUUID(after)
			if !ok {
				return archive.BadID(after)
			}
			from = append(k.record(id), 0) // the first key after it
		}
		return db.eachItem(ctx, txn, k.table(tableRecord), from, func(item *badger.Item) (bool, error) {
			_, _, id := accountOf(item.Key())
			ids = append(ids, uuid(id).String())
			return len(ids) < limit, nil
		})
	})

	return ids, err
}

// Tombstones returns the next tombstones in the order of their keys; see transfer.Mover.
func (db *DB) Tombstones(
	ctx context.Context, after transfer.Tombstone, limit int,
) (page []transfer.Tombstone, err error) {
	var last []byte
	if after != (transfer.Tombstone{}) {
		w, err := writeTombstone(after)
		if err != nil {
			return nil, err
		}
		last = append(w.key, 0)
	}

	err = db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			for _, table := range []byte{tableTombstone, tableSelector} {
				from := k.table(table)
				if bytes.Compare(from, last) < 0 {
					from = last // if that is in another table, there is nothing in this one after it
				}
				err := db.each(ctx, txn, k.table(table), from, func(key, value []byte) (bool, error) {
					if len(page) == limit {
						return false, nil
					}
					t, err := readTombstone(key, value)
					page = append(page, t)
					return true, err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})

	return page, err
}

// readTombstone reads what writeTombstone writes.
func readTombstone(key, value []byte) (t transfer.Tombstone, err error) {
	k, table, rest := accountOf(key)
	t = transfer.Tombstone{Account: string(k[2:]), OfValue: table == tableSelector, Key: [16]byte(rest)}
	var ok bool
	if t.At, ok = readTime(value); !ok {
		return t, damaged(key, errTime)
	}
	t.Unseen = len(value) > tombstoneBytes

	return t, nil
}

func writeTombstone(t transfer.Tombstone) (w write, err error) {
	k, err := keysOf(t.Account)
	if t.OfValue {
		return write{k.selector(t.Key), appendTime(nil, t.At)}, err
	}

	return write{k.tombstone(t.Key), tombstoneOf(t.At, t.Unseen)}, err
}

// Bury stores tombstones; see transfer.Mover.
func (db *DB) Bury(ctx context.Context, tombstones []transfer.Tombstone) error {
	added := int64(0)
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		added = 0
		for _, t := range tombstones {
			w, err := writeTombstone(t)
			if err != nil {
				return nil, err
			}
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
		clear(db.selectors) // what was deleted elsewhere is not yet known to those in memory
		return writes, nil
	})
	if err == nil {
		db.tombstones.Add(added)
	}

	return err
}
