package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// scan is one pass over an account's list, newest first.
type scan struct {
	db      *DB
	tx      pgx.Tx
	account string // as in the tables
	query   *query.Query
	visit   func(fill query.Fill) (more bool, err error)

	weeks    []weekSpan
	oldest   int64 // order times between which rows are visited, both included
	newest   int64
	exact    bool    // the database finds what the query finds, and nothing else
	days     []int64 // terms of the days in which all lies that is found; nil: the list's own order tells
	needs    rowcode.Columns
	deadline time.Time // of looking into bodies; zero: none
	stopped  *query.Position
	done     bool
	cut      bool // rows were too heavy to be looked at in one step

	at    int64 // the place of the last row
	id    uuid
	line  []byte // and the rest of it
	row   wire.Row
	seen  int // rows so far
	bytes int // of their lines
}

// Rows are asked for in a small step and then in large ones: whoever wants few gets few, and whoever wants all asks few times.
// Of heavy rows few are asked for at a time: those that nobody wants any more are still sent.
const (
	stepFirst  = 1000
	stepMost   = 100_000
	stepBytes  = 32 << 20
	bodiesStep = 200 // rows of which the bodies are looked into, at a time
)

// newScan makes a pass over the rows that match q, behind q.After.
func (db *DB) newScan(ctx context.Context, tx pgx.Tx, account string, q *query.Query) (*scan, error) {
	s := &scan{db: db, tx: tx, account: account, query: q, needs: q.Columns()}
	if q.Budget > 0 {
		s.deadline = time.Now().Add(q.Budget)
	}
	s.oldest, s.newest = bounds(q)
	ids, some := idsOf(q.Where)
	var err error
	if some {
		s.weeks, err = s.placesOf(ctx, ids)
	} else {
		s.weeks, err = spans(ctx, tx, account)
	}
	return s, err
}

// idsOf are the ids of which a record must have one; some is false if the filter does not say so.
func idsOf(c query.Condition) (ids []uuid, some bool) {
	switch c := c.(type) {
	case query.All:
		for _, part := range c {
			if ids, some := idsOf(part); some {
				return ids, true
			}
		}
	case *query.Test:
		if c.Column != rowcode.ColumnID || c.Texts == nil {
			return nil, false
		}
		for _, text := range c.Texts {
			if id, ok := parseUUID(text); ok {
				ids = append(ids, id)
			}
		}
		return ids, true
	}
	return nil, false
}

// placesOf says where the records with these ids stand in the list, as if each were a week of its own. The list has no index of ids.
func (s *scan) placesOf(ctx context.Context, ids []uuid) (places []weekSpan, err error) {
	byWeek := make(map[time.Time][]uuid)
	for _, id := range ids {
		week := weekOf(tsOf(id))
		byWeek[week] = append(byWeek[week], id)
	}
	for _, week := range slices.SortedFunc(maps.Keys(byWeek), time.Time.Compare) {
		ids := byWeek[week]
		from, to := weekEnds(week)
		rows, err := s.tx.Query(ctx, selectStates, s.account, ids, from, to)
		if err != nil {
			return nil, err
		}
		var id uuid
		var revision int64
		var packed []byte
		if _, err = pgx.ForEachRow(rows, []any{&id, &revision, &packed}, func() error {
			state, err := s.db.codec.unpackState(packed, id)
			if err == nil && !state.Orphan() {
				at := nanosOf(state.Request.At)
				places = append(places, weekSpan{week: week, oldest: at, newest: at})
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// bounds are the order times between which everything lies that can match.
func bounds(q *query.Query) (oldest, newest int64) {
	oldest, newest = nanosLeast, nanosMost
	from, to := q.Span()
	if !from.IsZero() {
		oldest = nanosOf(from)
	}
	if !to.IsZero() {
		newest = nanosOf(to)
	}
	if q.After != nil {
		newest = min(newest, nanosOf(q.After.At))
	}
	return oldest, newest
}

// run calls visit for every match until it wants no more, or for as many rows as are asked for.
func (s *scan) run(ctx context.Context, most int) error {
	after := s.query.After
	for w := range windows(s.weeks, s.oldest, s.newest) {
		for more := true; more && most > 0 && !s.done; {
			step := min(s.nextStep(), most)
			n, err := s.step(ctx, w, after, step)
			if err != nil {
				return err
			}
			most -= n
			if more = n == step || s.cut; more {
				after = &query.Position{At: time.Unix(0, s.at), RequestID: s.id.String()}
			}
		}
		if s.done || most == 0 {
			return nil
		}
	}
	return nil
}

// nextStep is how many rows to ask for.
func (s *scan) nextStep() int {
	step := stepMost
	switch {
	case s.query.NeedsBody():
		return bodiesStep
	case s.seen == 0 || s.query.NeedsWhole():
		step = stepFirst
	}
	if s.bytes > 0 {
		step = min(step, max(1, stepBytes*s.seen/s.bytes))
	}

	return step
}

// unindexed is the order time such that no index on it is thought of: where the terms of days find the same, to read it costs several times as much.
const unindexed = "(at + 0)"

// from makes what follows SELECT and its columns: the rows of a window that the filter may find.
func (s *scan) from(w window, after *query.Position) (sql string, st *statement, err error) {
	st = &statement{account: s.account}
	if s.days != nil {
		st.at = unindexed
	}
	sql = " FROM records WHERE account_id = " + st.arg(s.account) + " AND ts >= " + st.arg(w.from) + " AND ts < " + st.arg(w.to) +
		" AND " + st.orderTime() + " >= " + st.arg(w.oldest) + " AND " + st.orderTime() + " <= " + st.arg(w.newest)
	if s.days != nil {
		sql += " AND " + st.anyTerm(s.days)
	}
	if after != nil {
		id, ok := parseUUID(after.RequestID)
		if !ok {
			return "", nil, badID(after.RequestID)
		}
		sql += " AND (at, request_id) < (" + st.arg(nanosOf(after.At)) + ", " + st.arg(id) + ")"
	}
	p := st.where(s.query)
	if s.exact = p.exact; p.sql != "" {
		sql += " AND " + p.sql
	}
	return sql, st, nil
}

const newestFirst = " ORDER BY at DESC, request_id DESC LIMIT "

// step visits up to limit rows of a window, and says how many rows it saw.
func (s *scan) step(ctx context.Context, w window, after *query.Position, limit int) (n int, err error) {
	sql, st, err := s.from(w, after)
	if err != nil {
		return 0, err
	}
	sql = "SELECT at, request_id, line" + sql + newestFirst + st.arg(limit)
	rows, err := s.tx.Query(ctx, sql, st.planned()...)
	if err != nil {
		return 0, err
	}
	if s.query.NeedsBody() {
		return s.stepBodies(ctx, rows)
	}
	if s.query.NeedsWhole() {
		return s.stepWhole(ctx, rows)
	}
	defer rows.Close()
	for !s.done && rows.Next() {
		n++
		if err := rows.Scan(&s.at, &s.id, (*lent)(&s.line)); err != nil {
			return n, err
		}
		s.seen, s.bytes = s.seen+1, s.bytes+len(s.line)
		if err := s.judge(ctx, nil); err != nil {
			return n, err
		}
	}
	if s.done {
		rows.Close() // the error of a query that was left early is of no interest
		return n, nil
	}
	return n, rows.Err()
}

// lent is a []byte that aliases what was read, until the next row.
type lent []byte

// ScanBytes is pgx's.
func (l *lent) ScanBytes(v []byte) error { *l = v; return nil }

// judge asks the query about the row, if the database could not tell, and has it visited if it matches.
func (s *scan) judge(ctx context.Context, body func() ([]byte, error)) error {
	s.row = wire.Row{}
	if !s.exact {
		row, err := s.fill(s.needs | rowcode.PlaceColumns)
		if err != nil {
			return err
		}
		subject := query.Subject{Row: row, Body: body, Metadata: func() (map[string]string, error) { return s.metadata(ctx) }}
		ok := s.query.Match(&subject)
		if subject.Err != nil {
			return subject.Err
		}
		if !ok {
			if !s.deadline.IsZero() && time.Now().After(s.deadline) {
				p := query.PositionOf(row)
				s.stopped, s.done = &p, true
			}
			return nil
		}
	}
	more, err := s.visit(s.fill)
	s.done = s.done || !more
	return err
}

// fill returns the row with the columns that are wanted.
func (s *scan) fill(want rowcode.Columns) (*wire.Row, error) {
	row := &s.row
	row.AcceptedAt = time.Unix(0, s.at).UTC()
	if want.Has(rowcode.ColumnID) && row.RequestID == "" {
		row.RequestID = s.id.String()
		row.ID = row.RequestID
	}
	if want&^rowcode.PlaceColumns == 0 {
		return row, nil
	}
	if err := rowcode.Decode(s.line, want, row); err != nil {
		return nil, damaged("the row of record "+s.id.String(), err)
	}
	return row, nil
}

// planned are the arguments, with the order to plan the statement anew for them: whether an index is of use depends on what is asked.
func (s *statement) planned() []any { return append([]any{pgx.QueryExecModeCacheDescribe}, s.args...) }
