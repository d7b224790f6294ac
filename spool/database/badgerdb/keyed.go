package badgerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// smallValues is the keyed.Store of a DB.
type smallValues struct{ *DB }

// smallKey returns the key of a value; see the layout in doc.go.
func smallKey(k keyed.Key) []byte {
	key := append([]byte{ofKind}, k.Kind...)
	key = append(key, 0, byte(len(k.Account)))
	return append(append(key, k.Account...), k.Name...)
}

// readSmallKey reverses smallKey.
func readSmallKey(key []byte) (k keyed.Key) {
	kind, rest, _ := strings.Cut(string(key[1:]), "\x00")
	account := 1 + int(rest[0])
	return keyed.Key{Kind: keyed.Kind(kind), Account: rest[1:account], Name: rest[account:]}
}

// Get implements keyed.Reader.
func (db smallValues) Get(_ context.Context, keys ...keyed.Key) ([]json.RawMessage, error) {
	values := make([]json.RawMessage, len(keys))
	err := db.view(func(txn *badger.Txn) error {
		for i, k := range keys {
			var err error
			values[i], err = loadBytes(txn, smallKey(k))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return values, err
}

// Scan implements keyed.Reader.
func (db smallValues) Scan(ctx context.Context, from keyed.Key, skip, limit int) ([]keyed.Entry, error) {
	key := smallKey(from)
	return db.smallPage(ctx, key[:len(key)-len(from.Name)], key, skip, limit)
}

// Walk implements keyed.Store.
func (db smallValues) Walk(ctx context.Context, after keyed.Key, limit int) ([]keyed.Entry, error) {
	prefix := []byte{ofKind}
	if after == (keyed.Key{}) {
		return db.smallPage(ctx, prefix, prefix, 0, limit)
	}

	// The first key after it.
	return db.smallPage(ctx, prefix, append(smallKey(after), 0), 0, limit)
}

// smallPage returns the entries with a prefix from a key on, without the first skip of them.
func (db smallValues) smallPage(
	ctx context.Context, prefix, from []byte, skip, limit int,
) (page []keyed.Entry, err error) {
	err = db.view(func(txn *badger.Txn) error {
		return db.eachItem(ctx, txn, prefix, from, func(item *badger.Item) (bool, error) {
			if skip--; skip >= 0 {
				return true, nil
			}

			value, err := valueOf(item, nil)
			page = append(page, keyed.Entry{Key: readSmallKey(item.Key()), Value: value})
			return len(page) < limit, err
		})
	})
	return page, err
}

// Change implements keyed.Store. fn may take long to decode and encode a template with many
// versions, so it runs outside the committer: only changes of the same account wait for it.
func (db smallValues) Change(ctx context.Context, account string, _ bool, fn func(*keyed.Tx) error) error {
	// Held over the reads and the commit: else another change would be lost.
	changing := db.changing.of(account)
	changing.Lock()
	defer changing.Unlock()

	if err := db.stopped(ctx); err != nil {
		return err
	}
	tx := keyed.NewTx(db)
	if err := fn(tx); err != nil {
		return err
	}
	return db.Write(ctx, tx.Entries()...)
}

// Write implements keyed.Store.
func (db smallValues) Write(ctx context.Context, entries ...keyed.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return db.commit.do(ctx, 0, func(*badger.Txn) (writes []write, err error) {
		for _, e := range entries {
			writes = append(writes, write{smallKey(e.Key), e.Value})
		}
		return writes, nil
	})
}

// accountLocks has a lock for each account, which an account may share with others.
type accountLocks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

// of returns the lock of an account.
func (l *accountLocks) of(account string) *sync.Mutex {
	return &l.locks[maphash.String(l.seed, account)%uint64(len(l.locks))]
}

// errTime is for a tombstone that holds no time.
var errTime = errors.New("it is not a time")

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return smallValues{db} }

// IDs returns ids of records; see archive.Store.
func (db *DB) IDs(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		before := uuid(bytes.Repeat([]byte{0xff}, len(uuid{})))
		if after != "" {
			before, _ = parseUUID(after)
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
				// If that is in another table, there is nothing in this one after it.
				from = last
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
	return write{k.tombstone(t.Key), appendTime(nil, t.At)}
}

// Bury stores tombstones; see transfer.Mover.
func (db *DB) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	k := keysOf(account)
	return db.commit.do(ctx, 0, func(*badger.Txn) (writes []write, err error) {
		for _, t := range tombstones {
			writes = append(writes, k.bury(t))
		}

		// Those in memory do not know yet of deletions in the other database.
		delete(db.selectors, k)
		return writes, nil
	})
}
