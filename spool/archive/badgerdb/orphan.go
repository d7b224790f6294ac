package badgerdb

import (
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
	"promptspool/spool/archive/accounts"
)

// loadOrphans reads the account's tally of orphans, once for a batch and only if it may
// change.
func (f *folding) loadOrphans() error {
	if f.orphans != nil {
		return nil
	}

	var o archive.Orphans
	_, err := load(f.txn, f.keys.orphans(), &o)
	f.orphans = &o
	return err
}

// listOrphan writes the line of a record whose request has not arrived, or deletes it
// once the request has.
func (f *folding) listOrphan(r *record) error {
	// r.orphan is what it was before the batch.
	row, ok := r.state.OrphanRow()
	switch {
	case ok:
		value, err := jsonscan.Marshal(row)
		f.writes = append(f.writes, write{f.keys.orphan(r.id), value})
		return err
	case r.orphan:
		f.writes = append(f.writes, write{key: f.keys.orphan(r.id)})
	}
	return nil
}

// unlistOrphan takes a record that is deleted off the list and out of the tally.
func (f *folding) unlistOrphan(r *record) error {
	if err := f.loadOrphans(); err != nil {
		return err
	}

	// The tally is of what waits, and this waits no more.
	f.orphans.Add(archive.Orphans{}.Minus(r.waiting))
	f.writes = append(f.writes, write{key: f.keys.orphan(r.id)})
	return nil
}

// writeOrphans stores the tally if it was loaded.
func (f *folding) writeOrphans() error {
	if f.orphans == nil {
		return nil
	}

	// Once for the batch, whatever its events did to it.
	value, err := jsonscan.Marshal(f.orphans)
	f.writes = append(f.writes, write{f.keys.orphans(), value})
	return err
}

// Orphans lists records whose request has not arrived; see archive.Store.
func (db *DB) Orphans(
	ctx context.Context, account, after string, limit int,
) (rows []wire.Orphan, more bool, tally archive.Orphans, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, false, tally, err
	}

	var from []byte
	if after != "" {
		id, ok := parseUUID(after)
		if !ok {
			return nil, false, tally, badID(after)
		}
		from = append(k.orphan(id), 0) // the first key behind it
	}

	err = db.view(func(txn *badger.Txn) error {
		if _, err := load(txn, k.orphans(), &tally); err != nil || limit == 0 {
			return err
		}

		return db.each(ctx, txn, k.table(tableOrphan), from, func(key, value []byte) (bool, error) {
			// One line beyond the page shows that there are more.
			if more = len(rows) == limit; more {
				return false, nil
			}

			var row wire.Orphan
			err := decode(key, value, &row)
			rows = append(rows, row)
			return true, err
		})
	})

	return rows, more, tally, err
}

// OrphansOfAll returns the sum of the tallies of all accounts.
func (db *DB) OrphansOfAll(ctx context.Context) (archive.Orphans, error) {
	var all archive.Orphans
	err := db.view(func(txn *badger.Txn) error {
		return db.eachAccount(ctx, txn, func(k keys) error {
			var o archive.Orphans
			_, err := load(txn, k.orphans(), &o)
			all.Add(o)
			return err
		})
	})

	return all, err
}

// eachAccount calls fn for every account.
func (db *DB) eachAccount(ctx context.Context, txn *badger.Txn, fn func(keys) error) error {
	return db.each(ctx, txn, serverKey(accounts.Accounts, ""), nil, func(key, value []byte) (bool, error) {
		var a wire.Account
		if err := decode(key, value, &a); err != nil {
			return false, err
		}

		k, err := keysOf(a.ID)
		if err == nil {
			err = fn(k)
		}
		return true, err
	})
}
