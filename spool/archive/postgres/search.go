package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Search returns a page; see archive.Store.
func (db *DB) Search(ctx context.Context, account string, q query.Query) (page query.Page, err error) {
	key, err := accountKey(account)
	if err != nil {
		return page, err
	}
	err = db.search(ctx, func(tx pgx.Tx) error {
		s, err := db.newScan(ctx, tx, key, &q)
		if err != nil {
			return err
		}
		if s.asked() {
			page, err = s.page(ctx)
		} else {
			page, err = s.find(ctx)
		}
		return err
	})
	if err != nil {
		return query.Page{}, err
	}
	return page, nil
}

// asked says whether the database can answer the whole question by itself.
func (s *scan) asked() bool { return s.query.Order.By == "" && s.predicate().exact }

// predicate tells what the database can find of the query.
func (s *scan) predicate() predicate { return (&statement{account: s.account}).where(s.query) }

// page has the database find the page and count what matches.
func (s *scan) page(ctx context.Context) (page query.Page, err error) {
	q := s.query
	rows := q.NewPage()
	skip := q.Offset
	s.visit = func(fill query.Fill) (bool, error) {
		switch {
		case skip > 0:
			skip--
			return true, nil
		case rows.Full():
			page.More = true
			return false, nil
		}

		row, err := fill(rowcode.AllColumns)
		if err != nil {
			return false, err
		}
		rows.Add(*row)
		return true, nil
	}
	if err := s.run(ctx, q.Offset+q.Limit+1); err != nil {
		return page, err
	}

	if page.Rows = rows.Rows; !q.Filtered() {
		page.Total = s.records()
		return page, nil
	}
	page.Total, err = s.count(ctx, query.TotalMax+1)
	if page.Total > query.TotalMax {
		page.Total, page.TotalIsLowerBound = query.TotalMax, true
	}
	return page, err
}

// records is how many the account has.
func (s *scan) records() (n int) {
	for _, w := range s.weeks {
		n += w.records
	}
	return n
}

// count counts what matches, wherever the page begins, up to most.
func (s *scan) count(ctx context.Context, most int) (n int, err error) {
	all := *s.query
	all.After = nil
	whole := *s
	whole.query = &all
	oldest, newest := bounds(&all)
	if s.predicate().terms {
		whole.days = dayTerms(s.account, oldest, newest)
	}
	for w := range windows(s.weeks, oldest, newest) {
		sql, st, err := whole.from(w, nil)
		if err != nil {
			return n, err
		}
		found := 0
		sql = "SELECT count(*) FROM (SELECT 1" + sql + " LIMIT " + st.arg(most-n) + ") found"
		if err := s.tx.QueryRow(ctx, sql, st.planned()...).Scan(&found); err != nil {
			return n, err
		}
		if n += found; n == most {
			break
		}
	}
	return n, nil
}

// find looks at every row that the database finds.
func (s *scan) find(ctx context.Context) (query.Page, error) {
	q := s.query
	f := query.NewFinder(q)
	if !q.Filtered() {
		f.Total(s.records())
	}
	if !q.Streams() && (q.Filtered() || q.Order.By != "") {
		all := *q
		all.After = nil // what comes before the cursor counts
		s.query = &all
		s.oldest, s.newest = bounds(&all)
	}
	s.visit = f.Visit
	if err := s.run(ctx, math.MaxInt); err != nil {
		return query.Page{}, err
	}
	return f.Finish(s.stopped, func(requestID string) (row wire.Row, err error) {
		id, _ := parseUUID(requestID)
		state, err := s.state(ctx, id)
		row, _ = state.Row()
		return row, err
	})
}

// errEnd ends a transaction that only reads.
var errEnd = errors.New("the reader wants no more")

// Scan gives fn the rows that match; see archive.Store.
func (db *DB) Scan(ctx context.Context, account string, q query.Query, want rowcode.Columns, fn func(row *wire.Row) (bool, error)) (stopped *query.Position, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, err
	}
	var ended error // of fn: it has seen rows, so nothing may be done again
	err = db.search(ctx, func(tx pgx.Tx) error {
		s, err := db.newScan(ctx, tx, key, &q)
		if err != nil {
			return err
		}
		begun := false
		s.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(want)
			if err != nil {
				return false, err
			}
			begun = true
			more, err := fn(row)
			if err != nil {
				ended = err
				return false, errEnd
			}
			return more, nil
		}
		err = s.run(ctx, math.MaxInt)
		stopped = s.stopped
		if err != nil && begun && ended == nil {
			ended = failure(ctx, err)
			err = errEnd
		}
		return err
	})
	if ended != nil {
		return stopped, ended
	}
	return stopped, err
}
