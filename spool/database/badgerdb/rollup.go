package badgerdb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sync/errgroup"

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
	l := rollupList{db: db, prefix: k.rollup(q.Kind, "")}
	for half := range l.finders {
		l.finders[half] = rollup.NewFinder(&q)
	}
	if q.Names == nil {
		err = l.walkAll(ctx)
		return l.finders[0].Page(), err
	}

	err = db.view(func(txn *badger.Txn) error {
		for _, name := range q.Names {
			key := k.rollup(q.Kind, name)
			value, err := loadBytes(txn, key)
			if err == nil && value != nil {
				err = l.add(0, key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})

	return l.finders[0].Page(), err
}

// rollupList is a search for roll-ups. Nearly all of its time goes into Badger's iterator, so two walk
// at a time, each over one half of the names.
type rollupList struct {
	db      *DB
	prefix  []byte
	finders [2]*rollup.Finder
	passed  [2][][]byte // some of the keys, evenly
}

// passedEvery is after how many names a key is noted. Where there are fewer, one walks alone. It is a
// variable for tests.
var passedEvery = 1000

// walkAll adds all roll-ups.
func (l *rollupList) walkAll(ctx context.Context) error {
	var other errgroup.Group
	// The walk before has noted it.
	known, ok := l.db.middles.Load(string(l.prefix))
	middle, _ := known.([]byte)
	if ok {
		other.Go(func() error { return l.walk(ctx, 1, middle, nil) })
	}
	err := cmp.Or(l.walk(ctx, 0, nil, middle), other.Wait())
	if passed := slices.Concat(l.passed[0], l.passed[1]); passed != nil {
		l.db.middles.Store(string(l.prefix), passed[len(passed)/2])
	}
	l.finders[0].Merge(l.finders[1])

	return err
}

// walk adds the roll-ups from a key on, up to another one.
func (l *rollupList) walk(ctx context.Context, half int, from, to []byte) error {
	n := 0
	return l.db.view(func(txn *badger.Txn) error {
		return l.db.each(ctx, txn, l.prefix, from, func(key, value []byte) (more bool, err error) {
			if to != nil && bytes.Compare(key, to) >= 0 {
				return false, nil
			}
			if n++; n%passedEvery == 0 {
				l.passed[half] = append(l.passed[half], bytes.Clone(key))
			}
			return true, l.add(half, key, value)
		})
	})
}

// add adds a stored roll-up.
func (l *rollupList) add(half int, key, value []byte) error {
	sums, err := rollup.Decode(value)
	if err != nil {
		return damaged(key, err)
	}
	l.finders[half].Add(key[len(l.prefix):], &sums)

	return nil
}
