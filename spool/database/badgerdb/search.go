package badgerdb

import (
	"bytes"
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
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
			if s.oldestFirst = q.Order.ByTime() && q.Order.Ascending; s.oldestFirst {
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
		id, ok := parseUUID(row.RequestID)
		if !ok {
			return archive.BadID(row.RequestID)
		}
		value, err := loadBytes(txn, k.record(id))
		if err != nil {
			return err
		}

		// A large state may have deltas, and one of these the request.
		if bytes.HasPrefix(value, largeState) {
			state, err := db.joinState(txn, k, id, value)
			if err != nil {
				return err
			}
			whole, _ := state.Row()
			row.InputExcerpt, row.OutputExcerpt = whole.InputExcerpt, whole.OutputExcerpt
			continue
		}
		archive.ReadExcerpts(value, row)
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
