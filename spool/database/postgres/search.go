package postgres

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
)

// Search returns one page of the rows that match; see archive.Store.
func (db *DB) Search(ctx context.Context, account string, q query.Query) (page query.Page, err error) {
	err = db.pool.Search(ctx, func(tx pgx.Tx) error {
		s, err := db.newScan(ctx, tx, account, &q)
		if err != nil {
			return err
		}
		switch {
		// Where SQL can decide alone, no row has to come here to be tested.
		case s.exactInSQL():
			page, err = s.page(ctx)
		case s.sorts():
			page, err = s.sorted(ctx)
		default:
			page, err = s.find(ctx)
		}
		if err == nil && !q.Bare {
			err = s.loadExcerpts(ctx, page.Rows)
		}
		return err
	})
	if err != nil {
		return query.Page{}, err
	}

	return page, nil
}

// exactInSQL reports whether the database can answer the whole query by itself.
func (s *scan) exactInSQL() bool { return s.query.Order.By == "" && s.predicate().Exact }

// predicate returns what SQL can select of the query.
func (s *scan) predicate() filter.Predicate {
	return (&filter.Statement{Account: s.account}).Where(s.query)
}

// page has the database find the page and count the matches.
func (s *scan) page(ctx context.Context) (page query.Page, err error) {
	q := s.query
	f := query.NewFinder(q)
	s.visit = func(fill query.Fill) (bool, error) {
		_, err := f.Visit(fill)
		// SQL counts the rows after the page.
		return !f.More(), err
	}

	// One row more than the page has shows whether another page follows.
	if err := s.run(ctx, q.Offset+q.Limit+1); err != nil {
		return page, err
	}
	page, err = s.finish(ctx, f)

	// Where all matches were read, nothing has to be counted.
	switch {
	case !q.Filtered():
		page.Total = s.records()
	case err == nil && !q.Streams() && (q.After != nil || page.More):
		page.Total, err = s.count(ctx, query.TotalMax+1)
	}
	if page.Total > query.TotalMax && q.Filtered() {
		page.Total, page.TotalIsLowerBound = query.TotalMax, true
	}

	return page, err
}

// records returns how many records the account has.
func (s *scan) records() (n int) {
	// The counts that the scan has read anyway, without its own query.
	for _, w := range s.weeks {
		n += w.records
	}
	return n
}

// countPieces is how many pieces of the list the first statement of a count reads.
const countPieces = 8

// count counts the matches of the whole list, wherever the page begins, up to limit.
func (s *scan) count(ctx context.Context, limit int) (n int, err error) {
	all := *s.query
	all.After = nil
	whole := *s
	whole.query = &all

	// If the filter uses the index on terms anyway, the days go into the same index: it then
	// does not have to read every row that the terms alone find.
	oldest, newest := bounds(&all)
	if s.predicate().Terms {
		whole.days = filter.DayTerms(s.account, oldest, newest)
	}

	// Mostly few match, so that all windows are read: the first is large, unless it would span
	// weeks that are not searched.
	first := countPieces
	if s.byID {
		first = 1
	}
	for w := range windowsFrom(first, s.weeks, oldest, newest) {
		sql, st, err := whole.fromClause(w, nil)
		if err != nil {
			return n, err
		}

		// LIMIT inside: the database stops counting where the answer is known to be "more".
		found := 0
		sql = "SELECT count(*) FROM (SELECT 1" + sql + " LIMIT " + st.Arg(limit-n) + ") found"
		if err := s.tx.QueryRow(ctx, sql, s.planned(st)...).Scan(&found); err != nil {
			return n, err
		}
		if n += found; n == limit {
			break
		}
	}

	return n, nil
}

// find evaluates the query in Go, on every row that the database selects.
func (s *scan) find(ctx context.Context) (query.Page, error) {
	q := s.query
	f := query.NewFinder(q)
	f.Follow(&s.judge)
	if !q.Filtered() {
		f.Total(s.records())
	}

	// Matches before the cursor are not on the page, but they count.
	if !q.Streams() && (q.Filtered() || q.Order.By != "") {
		all := *q
		all.After = nil
		s.query = &all
		s.oldest, s.newest = bounds(&all)
	}

	s.visit = f.Visit
	if err := s.run(ctx, math.MaxInt); err != nil {
		return query.Page{}, err
	}

	return s.finish(ctx, f)
}

// finish reads the rows of the finder's page.
func (s *scan) finish(ctx context.Context, f *query.Finder) (query.Page, error) {
	return f.Finish(s.judge.Stopped, func(requestID string) (row wire.Row, err error) {
		id, _ := archive.ParseUUID(requestID)
		state, err := s.state(ctx, id)
		row, _ = state.Row()
		return row, err
	})
}

// errEnd ends a read-only transaction early.
var errEnd = errors.New("the reader wants no more")

// Scan calls fn with each row that matches; see archive.Store.
func (db *DB) Scan(
	ctx context.Context, account string, q query.Query, want rowcode.Columns, fn func(row *wire.Row) (bool, error),
) (stopped *query.Position, err error) {
	err = db.passOnce(ctx, func(tx pgx.Tx, begin func()) error {
		s, err := db.newScan(ctx, tx, account, &q)
		if err != nil {
			return err
		}

		s.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(want)
			if err != nil {
				return false, err
			}
			begin()
			return fn(row)
		}
		err = s.run(ctx, math.MaxInt)
		stopped = s.judge.Stopped
		return err
	})

	return stopped, err
}

// passOnce runs fn in a transaction that sees the database as of one moment. After a lost connection fn
// runs again, unless it has called begin: its caller has seen something of the answer then.
func (db *DB) passOnce(ctx context.Context, fn func(tx pgx.Tx, begin func()) error) error {
	var final error
	begun := false
	err := db.pool.Search(ctx, func(tx pgx.Tx) error {
		err := fn(tx, func() { begun = true })
		if err == nil || !begun {
			return err
		}
		final = err
		// This error is not retried.
		return errEnd
	})
	if final == nil {
		return err
	}

	// Errors of the caller stay as they are.
	if ctx.Err() != nil || connection.SQLState(final) != "" || connection.Away(final) {
		return connection.Failure(ctx, final)
	}
	return final
}

// loadExcerpts fills in what a page shows and headers do not have: it is in the states.
func (s *scan) loadExcerpts(ctx context.Context, rows []wire.Row) error {
	byID := make(map[uuid]*wire.Row)
	for i := range rows {
		id, _ := archive.ParseUUID(rows[i].RequestID)
		byID[id] = &rows[i]
	}

	var plain []byte
	return s.eachState(ctx, slices.Collect(maps.Keys(byID)), func(id uuid, packed []byte) (err error) {
		plain, err = s.db.codec.Unpack(packed, plain)
		if err != nil {
			return damaged("the state of record "+id.String(), err)
		}
		archive.ReadExcerpts(plain, byID[id])
		return nil
	}, func(id uuid, state *archive.Stored) {
		// Only two short texts of it stay: the next one may be as large.
		whole, _ := state.Row()
		byID[id].InputExcerpt, byID[id].OutputExcerpt = whole.InputExcerpt, whole.OutputExcerpt
	})
}

// weekSpan says where in the list the records of one week of ids are. That is mostly in the
// same week, but an app may send any id and any start.
type weekSpan struct {
	week           time.Time
	oldest, newest int64 // list times
	first, last    int64 // order times
	records        int
}

// window is a part of an account's list, and the partitions that hold its rows.
type window struct {
	oldest, newest int64 // list times, both included
	from, to       pgtype.Timestamptz
}

// weekSpans reads where the account's records are, and how many there are.
func weekSpans(ctx context.Context, tx pgx.Tx, account string) (all []weekSpan, err error) {
	rows, _ := tx.Query(ctx, `
		SELECT week, min(list_oldest), max(list_newest), min(oldest), max(newest), sum(records)::bigint
		FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING max(list_newest) IS NOT NULL`, account)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s weekSpan, err error) {
		err = row.Scan(&s.week, &s.oldest, &s.newest, &s.first, &s.last, &s.records)
		return s, err
	})
}

// acceptedBetween returns the weeks with order times from one time to another. A zero time
// is not a bound.
func acceptedBetween(weeks []weekSpan, from, to time.Time) []weekSpan {
	return slices.DeleteFunc(weeks, func(w weekSpan) bool {
		return !from.IsZero() && w.last < schema.Nanos(from) || !to.IsZero() && w.first > schema.Nanos(to)
	})
}

// windows divides the list between two list times into windows, newest first.
//
// Each window has twice as many pieces as the one before: an answer near the top of the list
// reads few partitions, and one anywhere else takes few queries.
func windows(weeks []weekSpan, oldest, newest int64) iter.Seq[window] {
	return windowsFrom(1, weeks, oldest, newest)
}

// windowsFrom is windows with a first window of n pieces.
func windowsFrom(n int, weeks []weekSpan, oldest, newest int64) iter.Seq[window] {
	return func(yield func(window) bool) {
		pieces := smallestWindows(weeks, oldest, newest)

		for n := n; len(pieces) > 0; n *= 2 {
			n = min(n, len(pieces))
			// pieces are newest first, so the last one has the oldest end.
			w := pieces[0]
			for _, p := range pieces[1:n] {
				w.oldest = p.oldest
				w.from, w.to = earlier(w.from, p.from), later(w.to, p.to)
			}
			if !yield(w) {
				return
			}
			pieces = pieces[n:]
		}
	}
}

// smallestWindows divides a list at every list time where the set of weeks that have rows
// there changes, newest first. It leaves out pieces without rows.
func smallestWindows(weeks []weekSpan, oldest, newest int64) (pieces []window) {
	var starts []int64
	for _, w := range weeks {
		if w.newest < oldest || w.oldest > newest {
			continue
		}
		starts = append(starts, max(w.oldest, oldest))
		if w.newest < newest {
			starts = append(starts, w.newest+1)
		}
	}
	// Between two of these the weeks that have rows are always the same.
	slices.Sort(starts)
	starts = slices.Compact(starts)

	top := newest
	for _, bottom := range slices.Backward(starts) {
		p := window{oldest: bottom, newest: top}
		found := false

		for _, w := range weeks {
			if w.newest < bottom || w.oldest > top {
				continue
			}
			// The span of ids over all these weeks; weeks between them cost little to exclude.
			from, to := schema.WeekEnds(w.week)
			if !found {
				p.from, p.to = from, to
			}
			p.from, p.to, found = earlier(p.from, from), later(p.to, to), true
		}

		if found {
			pieces = append(pieces, p)
		}
		top = bottom - 1
	}

	return pieces
}

// compareEnds orders ends of weeks. The Time of an infinite one means nothing.
func compareEnds(a, b pgtype.Timestamptz) int {
	return cmp.Or(cmp.Compare(a.InfinityModifier, b.InfinityModifier), a.Time.Compare(b.Time))
}

func earlier(ends ...pgtype.Timestamptz) pgtype.Timestamptz { return slices.MinFunc(ends, compareEnds) }

func later(ends ...pgtype.Timestamptz) pgtype.Timestamptz { return slices.MaxFunc(ends, compareEnds) }

// The ends of a list without bounds. One less than the range of int64, so that code may add
// or subtract one.
const (
	nanosLeast = math.MinInt64 + 1
	nanosMost  = math.MaxInt64 - 1
)
