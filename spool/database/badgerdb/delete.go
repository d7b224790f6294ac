package badgerdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// GoneBy returns when what is deleted now will have left the files; see archive.Store.
func (db *DB) GoneBy() time.Time { return db.now().UTC().Add(eraseWithin) }

// Forget keeps out a metadata value; see archive.Store.
func (db *DB) Forget(ctx context.Context, account string, values ...wire.Deletion) error {
	k := keysOf(account)
	return db.change(ctx, k, 0, len(values), func(f *folding) error {
		for _, d := range values {
			if err := f.forget(d); err != nil {
				// It has some that will not be stored.
				delete(db.selectors, k)
				return err
			}
		}
		return nil
	})
}

// havingStep is how many rows Having looks for at a time.
const havingStep = 1000

// Having returns the ids of records that may have a metadata value; see archive.Store.
// First come those whose rows show it, in their order, then all others.
func (db *DB) Having(
	ctx context.Context, account string, d wire.Deletion, after string,
) (ids []string, next string, err error) {
	where := wire.Where("metadata", "is", d.Value)
	where.NestedKey = d.Key
	q, err := query.Compile(wire.Search{Cursor: after, FilterGroup: &where})
	if err != nil {
		return nil, "", err
	}

	_, err = db.Scan(ctx, account, q, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
		p := query.PositionOf(row)
		ids, next = append(ids, p.RequestID), p.Cursor()
		return len(ids) < havingStep, nil
	})
	if err != nil || len(ids) == havingStep {
		return ids, next, err
	}

	// After the rows: a later event may hide a value meanwhile. Only one that sets a
	// deleted value, or a request, shows it again, and the fold of these keeps the record
	// out.
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		hash := rowcode.HashValue(d.Key, d.Value)
		prefix := append(k.table(tableHidden), hash[:]...)
		return db.each(ctx, txn, prefix, nil, func(key, _ []byte) (bool, error) {
			ids = append(ids, uuid(key[len(key)-16:]).String())
			return true, nil
		})
	})

	return ids, "", err
}

// forget writes the tombstone of a metadata value.
func (f *folding) forget(d wire.Deletion) error {
	known, err := f.selectors()
	if err != nil {
		return err
	}

	// The value itself must not stay in the files, so its hash is remembered.
	hash := rowcode.HashValue(d.Key, d.Value)
	before := d.Before

	// A later deletion of the same value extends the earlier one, and never shortens it.
	old, found := known[hash]
	switch {
	case found && old.After(before):
		before = old
	case !found && len(known) >= selectorsMax:
		return wire.Errorf(wire.CodeTooLarge, "This project has deleted by %d metadata values; "+
			"no more can be remembered. Delete by request_id.", selectorsMax)
	}

	// In memory too, for the changes that follow in the same group.
	known[hash] = before
	f.set(f.keys.selector(hash), appendTime(nil, before))

	return nil
}

// selectorsMax bounds the deleted metadata values of an account, which are held in
// memory: 5 MB.
const selectorsMax = 100_000

// selectors returns the account's deleted metadata values, with the time up to which each
// was deleted. Only changes call it, one at a time.
func (f *folding) selectors() (map[[16]byte]time.Time, error) {
	if known := f.db.selectors[f.keys]; known != nil {
		return known, nil
	}

	// Read whole, once: each event of each later write asks for them.
	known := make(map[[16]byte]time.Time)
	prefix := f.keys.table(tableSelector)
	err := f.db.each(context.Background(), f.txn, prefix, nil, func(key, value []byte) (bool, error) {
		at, ok := readTime(value)
		if !ok {
			return false, damaged(key, rowcode.ErrRow)
		}

		// The key ends with the hash of the value, which itself is kept nowhere.
		known[[16]byte(key[len(key)-16:])] = at
		return true, nil
	})

	if err == nil {
		f.db.selectors[f.keys] = known
	}

	return known, err
}

// DropBefore deletes what sets of earlier weeks keep of deleted records. It leaves records to be deleted
// one by one; see archive.Store.
func (db *DB) DropBefore(ctx context.Context, cutoff time.Time) (int64, time.Time, error) {
	week := archive.WeekKey(cutoff)
	return 0, cutoff, db.dropKeys(ctx, tableSet, func(key, value []byte) (drop, more bool) {
		set := archive.DecodeSet(value)
		return set.IsGone(), bytes.Compare(key, week[:]) < 0
	})
}

// oldTables had what sets have, up to format 2.
const oldTables = "cq"

// dropOld deletes the keys of tables of an earlier format.
func (db *DB) dropOld(ctx context.Context) error {
	all := func(_, _ []byte) (drop, more bool) { return true, true }
	return errors.Join(db.dropKeys(ctx, oldTables[0], all), db.dropKeys(ctx, oldTables[1], all))
}

// dropKeys deletes keys of a table of all accounts, some at a time. which looks at them in order, without
// what all begin with, until it returns no more.
func (db *DB) dropKeys(ctx context.Context, table byte, which func(key, value []byte) (drop, more bool)) error {
	accounts, err := db.accountKeys()
	for k := range accounts {
		prefix := k.table(table)
		for more := true; more && err == nil; {
			err = db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
				err = db.each(ctx, txn, prefix, nil, func(key, value []byte) (bool, error) {
					drop, follow := which(key[len(prefix):], value)
					if drop && follow {
						writes = append(writes, write{bytes.Clone(key), nil})
					}
					return follow && len(writes) < archive.ChangeStep, nil
				})
				more = len(writes) > 0
				return writes, err
			})
		}
	}

	return err
}

// Oldest returns the ids of the records with the lowest order times; see archive.Store.
func (db *DB) Oldest(
	ctx context.Context, account string, before time.Time, limit int,
) (ids []string, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		rows, err := db.acceptedBefore(ctx, txn, k, before, limit)

		// Rows and spans are in separate tables, and go by one age.
		places := append(rows, oldestSpans(txn, k, limit)...)
		slices.SortFunc(places, byAge)
		for _, p := range places[:min(len(places), limit)] {
			if before.IsZero() || p.At.Before(before) {
				ids = append(ids, p.RequestID)
			}
		}
		return err
	})

	return ids, err
}

// byAge orders positions by time, the oldest first.
func byAge(a, b query.Position) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.RequestID, b.RequestID))
}

// acceptedBefore returns the order times and ids of the rows with the lowest order times
// before a moment (zero: any), up to limit.
func (db *DB) acceptedBefore(
	ctx context.Context, txn *badger.Txn, k keys, before time.Time, limit int,
) (places []query.Position, err error) {
	var q query.Query
	if !before.IsZero() {
		where := wire.Where("accepted_at", "lt", before.UTC())
		q, err = query.CompileMatch(&where)
		if err != nil {
			return nil, err
		}
	}

	const want = rowcode.PlaceColumns | 1<<rowcode.ColumnAccepted
	_, err = db.scan(ctx, txn, k, &q, want, func(row *wire.Row) (bool, error) {
		places = append(places, query.Position{At: row.AcceptedAt, RequestID: row.RequestID})
		// Most of what came in any order is later than the oldest.
		if len(places) == 2*limit {
			slices.SortFunc(places, byAge)
			places = places[:limit]
		}
		return true, nil
	})
	slices.SortFunc(places, byAge)

	return places[:min(len(places), limit)], err
}
