package badgerdb

import (
	"bytes"
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb/blocks"
)

// Search returns a page; see archive.Store.
func (db *DB) Search(ctx context.Context, account string, q query.Query) (page query.Page, err error) {
	// The finder knows what a page is; the scan knows where rows are.
	f := query.NewFinder(&q)
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		// The total of an account is known without counting.
		if !q.Filtered() {
			counts, err := loadCounts(txn, k)
			if err != nil {
				return err
			}
			f.Total(int(counts.Records))
		}

		// A page that sorts or counts starts at the beginning: what comes before the
		// cursor counts.
		all := q
		if !q.Streams() && (q.Filtered() || q.Order.By != "") {
			all.After = nil
		}

		s, err := db.newScan(ctx, txn, k, &all)
		if err != nil {
			return err
		}

		f.Follow(&s.judge)
		// In an order of times, the other end of the list has the first rows.
		if q.Order.By != "" && q.Decides() {
			s.finder = f
			s.oldestFirst = q.Order.ByTime() && q.Order.Ascending
			if s.oldestFirst {
				f.AnyOrder()
			}
		}

		// The finder asks for the columns of a row that it needs, if any.
		s.visit = func(m *match) (bool, error) {
			if m.block == nil {
				return f.Visit(m.fill)
			}
			return f.VisitFar(m.fill, func() query.Locate { return s.far(m.index) })
		}
		if err := s.run(); err != nil {
			return err
		}

		page, err = f.Finish(s.judge.Stopped, func(requestID string) (row wire.Row, err error) {
			id, _ := parseUUID(requestID)
			state, err := db.state(txn, k, id)
			row, _ = state.Row()
			return row, err
		})
		if err == nil && !q.Bare {
			err = db.loadExcerpts(txn, k, page.Rows)
		}

		return err
	})
	if err != nil {
		return query.Page{}, err
	}

	return page, nil
}

// loadExcerpts fills in what a page shows and rows do not have: it is in their states.
func (db *DB) loadExcerpts(txn *badger.Txn, k keys, rows []wire.Row) error {
	for i := range rows {
		row := &rows[i]
		id, _ := parseUUID(row.RequestID)
		value, err := loadBytes(txn, k.record(id))
		if err != nil {
			return err
		}

		plain, large, err := db.unpackState(value)
		if err != nil {
			return damaged(k.record(id), err)
		}
		// A large state may have deltas, and one of these the request.
		if large {
			state, err := db.joinState(txn, k, id, value)
			if err != nil {
				return err
			}
			whole, _ := state.Row()
			row.InputExcerpt, row.OutputExcerpt = whole.InputExcerpt, whole.OutputExcerpt
			continue
		}
		archive.ReadExcerpts(plain, row)
	}

	return nil
}

// Scan calls fn with the rows that match; see archive.Store.
func (db *DB) Scan(
	ctx context.Context, account string, q query.Query, want rowcode.Columns,
	fn func(row *wire.Row) (bool, error),
) (stopped *query.Position, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		stopped, err = db.scan(ctx, txn, k, &q, want, fn)
		return err
	})
	return stopped, err
}

// checkEvery is how many rows a walk passes between checks whether anybody still waits
// for it.
const checkEvery = 512

// scan is Scan within a transaction.
func (db *DB) scan(
	ctx context.Context, txn *badger.Txn, k keys, q *query.Query, want rowcode.Columns,
	fn func(row *wire.Row) (bool, error),
) (stopped *query.Position, err error) {
	s, err := db.newScan(ctx, txn, k, q)
	if err != nil {
		return nil, err
	}

	// The columns that fn wants are filled in only now, for rows that match.
	s.visit = func(m *match) (bool, error) {
		row, err := m.fill(want)
		if err != nil {
			return false, err
		}

		return fn(row)
	}

	err = s.run()
	return s.judge.Stopped, err
}

// farBlock is a block that is opened later on.
type farBlock struct {
	place []byte
	head  blocks.Head
}

// far returns how to find the place of the block's row i later on: few are needed, and
// their column is the largest.
func (s *scan) far(i int) query.Locate {
	// One for all rows of the block: there may be many.
	if s.farther == nil || !bytes.Equal(s.farther.place, s.block.Place) {
		s.farther = &farBlock{bytes.Clone(s.block.Place), s.block.Head}
	}
	of := s.farther

	return func() (query.Position, error) {
		b := &s.located
		b.txn, b.codec, b.keys = s.txn, s.db.codec, s.keys
		if !bytes.Equal(b.Place, of.place) {
			b.open(of.place, of.head)
		}

		row, err := b.Row(i, rowcode.PlaceColumns)
		if err != nil {
			return query.Position{}, err
		}
		return query.PositionOf(row), nil
	}
}

// runOldestFirst is run from the oldest block to the newest. Within a block, rows still
// come newest first.
func (s *scan) runOldestFirst() {
	heads := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock), Reverse: true})
	defer heads.Close()

	// From the block on that has the oldest rows of the span, or what comes before them.
	if from, _ := s.query.Span(); !from.IsZero() {
		heads.Seek(s.keys.block(blocks.EncodePlace(from, uuid{})))
	} else {
		heads.Seek(append(s.keys.table(tableBlock), 0xff))
	}

	next, err := s.db.nextBlock(s.ctx, s.txn, s.keys, placeAt(heads))
	if s.fail(err) {
		return
	}
	late := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableLate), Reverse: true})
	defer late.Close()
	if next == nil {
		late.Seek(append(s.keys.table(tableLate), 0xff))
	} else {
		late.Seek(s.keys.late(next))
	}

	newest := true
	for ; heads.Valid() && newest && s.open(heads); heads.Next() {
		// Nothing above the end of the span is wanted.
		begin := s.block.Place
		newest = s.after == nil || bytes.Compare(begin, s.after) > 0
		if !newest {
			begin = s.after
		}
		s.collectAloneBackwards(late, begin, next)
		s.visitBlock()
		next = bytes.Clone(s.block.Place)
	}

	if !newest || s.done {
		return
	}
	first := s.txn.NewIterator(badger.IteratorOptions{Prefix: s.keys.table(tableBlock)})
	defer first.Close()
	first.Rewind()

	s.visitNewest(first)
}

// collectAloneBackwards is collectAlone for rows that come oldest first, down to the place begin.
func (s *scan) collectAloneBackwards(rows *badger.Iterator, begin, next []byte) {
	s.alone = s.alone[:0]
	for left := aloneBytes; rows.Valid() && !before(rows, begin) && !s.done; rows.Next() {
		// The walk may begin at the next block's place.
		if before(rows, next) {
			s.collectOneAlone(rows.Item(), &left)
		}
	}
	slices.Reverse(s.alone)
}

// verdict returns which rows of the block may match, and sets which of them the finder
// only counts.
func (s *scan) verdict() (v blocks.Verdict, err error) {
	b := &s.block
	s.passed = nil
	if s.finder == nil {
		return b.Evaluate(s.query)
	}

	enter, err := b.Within(s.finder.Bounds())
	if err != nil {
		return v, err
	}
	if !s.finder.Counts() && enter.Within(0, b.Head.Rows) < 0 {
		return blocks.Verdict{Must: enter, May: enter}, nil
	}
	v, err = b.Evaluate(s.query)
	if err != nil {
		return v, err
	}

	// Rows that certainly match and cannot enter are counted. Where only the row can
	// decide, it is visited.
	s.passed = v.Must.Without(enter)
	v.Must, v.May = v.Must.Without(s.passed), v.May.Without(s.passed)

	return v, nil
}
