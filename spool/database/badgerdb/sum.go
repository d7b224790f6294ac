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

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb/blocks"
)

// Sum adds every matching row to sums, by itself or with the summary of its block; see
// archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error {
	return db.viewOf(account, func(txn *badger.Txn, k keys) error {
		s, err := db.newScan(ctx, txn, k, &q)
		if err != nil {
			return err
		}

		s.visit = func(m *match) (bool, error) {
			row, err := m.fill(want)
			if err == nil {
				err = sums.Add(row)
			}

			return err == nil, err
		}

		u := summing{scan: s, sums: sums, want: want}
		s.skip = u.block
		if err := u.announceOldest(); err != nil {
			return err
		}

		return s.run()
	})
}

// summing adds blocks by their summaries.
type summing struct {
	scan    *scan
	sums    query.Sums
	want    rowcode.Columns
	summary []byte // of the current block; its memory is used again
}

// announceOldest tells sums the age of the oldest row covered by a summary, so that it knows from
// the start how long its buckets have to be.
func (u *summing) announceOldest() error {
	s := u.scan
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock), Reverse: true})
	defer it.Close()

	// From the oldest block on: the first that counts as a whole tells how far back sums go.
	for it.Seek(append(s.keys.table(tableBlock), 0xff, 0xff, 0xff, 0xff)); it.Valid(); it.Next() {
		if err := s.block.openAt(it); err != nil {
			return err
		}
		if u.inside() {
			// The row that the head calls the oldest may be hidden by one that stands alone.
			if alone, err := u.alone(); err != nil || alone {
				return err
			}

			u.sums.Reach(time.Unix(s.block.Head.Oldest, 0))
			return nil
		}

		if from, _ := s.query.Span(); s.block.Head.Oldest > from.Unix() {
			// It reaches beyond the end of the span, and so do all newer ones.
			return nil
		}
	}
	return nil
}

// alone reports whether any row stands alone in the block's part of the list.
func (u *summing) alone() (found bool, err error) {
	s := u.scan
	// The block's part of the list ends where the next block begins.
	next, err := s.db.nextBlock(s.ctx, s.txn, s.keys, s.block.Place)
	if err != nil {
		return false, err
	}

	rows, err := s.db.lonePlaces(s.ctx, s.txn, s.keys, span{place: s.block.Place, next: next})
	return len(rows) > 0, err
}

// inside reports whether all rows of the block are within the query's span of time.
func (u *summing) inside() bool {
	b := &u.scan.block

	// The head has only seconds, so a block at the very edge is walked row by row.
	newest, _ := blocks.DecodePlace(b.Place)
	from, to := u.scan.query.Span()
	return (from.IsZero() || time.Unix(b.Head.Oldest, 0).After(from)) && (to.IsZero() || newest.Before(to))
}

// block adds the block by its summary, and reports whether it could.
func (u *summing) block() bool {
	s := u.scan
	// A summary of an earlier form lacks counts, so no row can be taken back from it.
	if !u.inside() || s.block.Head.IsOld() && len(s.alone) > 0 {
		return false
	}

	var err error
	u.summary, err = s.block.readSummary(u.summary)
	if s.fail(err) || len(u.summary) == 0 {
		return false
	}

	// Rows that stand alone may hide some of the block: then these must be subtracted
	// again.
	ok, err := u.sums.Merge(u.summary, len(s.alone) == 0)
	if errors.Is(err, query.ErrSummary) {
		err = damaged(s.keys.part(s.block.Place, blocks.Summary), err)
	}
	if s.fail(err) || !ok {
		return false
	}
	u.rest()

	return true
}

// rest subtracts the rows of the block that others hide, and then adds those others. The
// order matters: once scores have too many names, nothing can be subtracted.
func (u *summing) rest() {
	s := u.scan
	for i := range s.alone {
		at, hides, err := s.block.Find(s.alone[i].place[:])
		if s.fail(err) {
			return
		}
		if !hides {
			continue
		}

		// As it was when the summary was made: the block never changes.
		row, err := s.block.Row(at, u.want|rowcode.PlaceColumns)
		if s.fail(err) {
			return
		}
		u.sums.Remove(row)
	}

	for i := 0; i < len(s.alone) && !s.done; i++ {
		s.visitLone(&s.alone[i])
	}
}

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
	l := rollupList{db: db, prefix: keysOf(account).rollup(q.Kind, "")}
	for half := range l.finders {
		l.finders[half] = rollup.NewFinder(&q)
	}
	if q.Names == nil {
		err = l.walkAll(ctx)
		return l.finders[0].Page(), err
	}

	var other errgroup.Group
	middle := len(q.Names) / 2
	other.Go(func() error { return l.named(1, q.Names[middle:]) })
	err = cmp.Or(l.named(0, q.Names[:middle]), other.Wait())
	l.finders[0].Merge(l.finders[1])

	return l.finders[0].Page(), err
}

// rollupList is a search for roll-ups. Nearly all of its time goes into reading Badger, so two read at a
// time, each one half of the names.
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

// named adds the roll-ups that some names have.
func (l *rollupList) named(half int, names []string) error {
	return l.db.view(func(txn *badger.Txn) error {
		for _, name := range names {
			key := append(slices.Clip(l.prefix), name...)
			value, err := loadBytes(txn, key)
			if err == nil && value != nil {
				err = l.add(half, key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
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
