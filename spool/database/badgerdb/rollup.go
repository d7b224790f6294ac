package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive/rollup"
)

// addRollups writes how the group changes the roll-ups. There are no weeks here: what is too old is
// deleted record by record.
func (f *folding) addRollups() error {
	for _, change := range f.group.Rollups(func(uuid) (week time.Time) { return week }) {
		key := f.keys.rollup(change.Kind, change.Name)
		sums := rollup.None()
		value, err := loadBytes(f.txn, key)
		if err == nil && value != nil {
			sums, err = rollup.Decode(value)
		}
		if err != nil {
			return damaged(key, err)
		}

		if sums.Add(change.Sums); sums.Empty() {
			f.delete(key)
		} else {
			f.set(key, sums.Encode())
		}
	}

	return nil
}

// rollup checks a stored roll-up, and notes it.
func (t *tally) rollup(key, rest, value []byte) error {
	sums, err := rollup.Decode(value)
	if err == nil && sums.Empty() {
		err = errEmptyRollup
	}
	if err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	t.rollups.Subtract(rollup.Kind(rest[0]), string(rest[1:]), &sums)

	return nil
}

var errEmptyRollup = errors.New("a roll-up of no records")

// Rollups finds roll-ups; see archive.Store.
func (db *DB) Rollups(ctx context.Context, account string, q rollup.Query) (page rollup.Page, err error) {
	k, err := keysOf(account)
	if err != nil {
		return page, err
	}

	finder := rollup.NewFinder(&q)
	add := func(key, value []byte) (more bool, err error) {
		sums, err := rollup.Decode(value)
		if err != nil {
			return false, damaged(key, err)
		}
		finder.Add(key[len(k)+2:], &sums)
		return true, nil
	}
	err = db.view(func(txn *badger.Txn) error {
		if q.Names == nil {
			return db.each(ctx, txn, k.rollup(q.Kind, ""), nil, add)
		}
		for _, name := range q.Names {
			key := k.rollup(q.Kind, name)
			value, err := loadBytes(txn, key)
			if err == nil && value != nil {
				_, err = add(key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})

	return finder.Page(), err
}
