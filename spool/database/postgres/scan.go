package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
)

// scan is one pass over an account's list, newest first.
type scan struct {
	db      *DB
	tx      pgx.Tx
	account string
	query   *query.Query
	visit   func(fill query.Fill) (more bool, err error)

	weeks  []weekSpan
	byID   bool  // each of weeks is a single record, and they may be far apart
	oldest int64 // list times between which rows are visited, both included
	newest int64
	exact  bool    // SQL selects exactly what the query matches
	days   []int64 // if not nil, the terms of all days to search; see fromClause
	needs  rowcode.Columns
	judge  query.Judge // of rows that SQL leaves open
	done   bool
	cut    bool   // the last step ended early, because its rows filled the memory for it
	ids    []uuid // the only rows that may match in the visited part of the list; nil if any may

	// The current row.
	at   int64
	id   uuid
	line []byte // the encoded row, without at and id
	row  wire.Row

	// Totals so far, from which the next step's size is estimated.
	seen  int // rows
	bytes int // of their lines
}

// Rows are read in a small step and then in large ones: a caller that wants few gets few,
// and one that wants all needs few round trips. If rows are heavy, steps are smaller,
// because rows of a step that are no longer wanted are still sent.
const (
	stepFirst  = 1000
	stepMost   = 100_000
	stepBytes  = 32 << 20
	bodiesStep = 200 // if bodies have to be searched
)

// newScan returns a scan over the rows that may match q, after q.After.
func (db *DB) newScan(ctx context.Context, tx pgx.Tx, account string, q *query.Query) (*scan, error) {
	s := &scan{
		db:      db,
		tx:      tx,
		account: account,
		query:   q,
		needs:   q.Columns(),
		judge:   query.NewJudge(q),
	}
	s.oldest, s.newest = bounds(q)

	// With ids in the filter a few places are searched, however long the list is.
	var err error
	if ids, required := requiredIDs(q.Where); required {
		s.byID = true
		s.weeks, err = s.spansByID(ctx, ids)
	} else {
		s.weeks, err = weekSpans(ctx, tx, account)
		from, to := q.AcceptedSpan()
		s.weeks = acceptedBetween(s.weeks, from, to)
	}

	return s, err
}

// requiredIDs returns the ids one of which every match must have. required is false if the
// filter allows any id.
func requiredIDs(c query.Condition) (ids []uuid, required bool) {
	switch c := c.(type) {
	case query.All:
		for _, part := range c {
			if ids, required := requiredIDs(part); required {
				return ids, true
			}
		}

	// Under Any or Not an id is not required: other rows may match as well.
	case *query.Test:
		if c.Column != rowcode.ColumnID || c.Texts == nil {
			return nil, false
		}
		for _, text := range c.Texts {
			if id, ok := archive.ParseUUID(text); ok {
				ids = append(ids, id)
			}
		}
		return ids, true
	}

	return nil, false
}

// spansByID looks up where the records with these ids are in the list, and returns each
// as a separate week span. The list has no index on ids, but it has one on the list time.
func (s *scan) spansByID(ctx context.Context, ids []uuid) (places []weekSpan, err error) {
	add := func(id uuid, state *archive.Stored) {
		if state.Listed() {
			at := schema.Nanos(state.ListTime())
			places = append(places, weekSpan{week: schema.WeekOf(id.Time()), oldest: at, newest: at})
		}
	}
	err = s.eachState(ctx, ids, func(id uuid, packed []byte) error {
		state, err := s.db.codec.unpackState(packed, id)
		add(id, &state)
		return err
	}, add)

	return places, err
}

// bounds returns the list times between which all matches are, both included.
func bounds(q *query.Query) (oldest, newest int64) {
	oldest, newest = nanosLeast, nanosMost

	// Any of the three may be missing; together they bound what a statement reads.
	from, to := q.Span()
	if !from.IsZero() {
		oldest = schema.Nanos(from)
	}
	if !to.IsZero() {
		newest = schema.Nanos(to)
	}
	if q.After != nil {
		newest = min(newest, schema.Nanos(q.After.At))
	}

	return oldest, newest
}

// run calls visit for each match until it wants no more, or limit rows were read.
func (s *scan) run(ctx context.Context, limit int) error {
	if len(s.query.Terms()) > 0 && !s.byID {
		return s.runTexts(ctx, limit)
	}
	_, err := s.runPart(ctx, s.query.After, s.oldest, s.newest, limit)

	return err
}

// runPart is run for a part of the list. It returns what is left of limit.
func (s *scan) runPart(
	ctx context.Context, after *query.Position, oldest, newest int64, limit int,
) (left int, err error) {
	for w := range windows(s.weeks, oldest, newest) {
		for more := true; more && limit > 0 && !s.done; {
			// LIMIT is part of the plan: a small one walks the index, a large one may sort.
			step := min(s.nextStep(), limit)
			n, err := s.step(ctx, w, after, step)
			if err != nil {
				return limit, err
			}

			// A full step, or one that ended early, leaves rows in the window: the next
			// continues after its last row.
			limit -= n
			more = n == step || s.cut
			if more {
				after = &query.Position{At: time.Unix(0, s.at), RequestID: s.id.String()}
			}
		}
		if s.done || limit == 0 {
			break
		}
	}

	return limit, nil
}

// nextStep returns how many rows to ask for.
func (s *scan) nextStep() int {
	step := stepMost
	switch {
	case s.query.NeedsBody():
		return bodiesStep
	case s.seen == 0 || s.query.NeedsWhole():
		step = stepFirst
	}

	// As many rows as stepBytes holds, if they are as heavy as those so far.
	if s.bytes > 0 {
		step = min(step, max(1, stepBytes*s.seen/s.bytes))
	}

	return step
}

// unindexed is the list time as an expression that no index covers. Where the terms of days
// select the same rows, the planner must not read the index on the list time as well: that
// costs several times as much.
const unindexed = "(at + 0)"

// fromClause returns what follows SELECT and its columns: the rows of a window that may
// match, after after.
func (s *scan) fromClause(w window, after *query.Position) (sql string, st *filter.Statement, err error) {
	st = &filter.Statement{Account: s.account}
	if s.days != nil {
		st.At = unindexed
	}

	// ts selects the partitions, the list time a range of the primary key within them.
	sql = " FROM records WHERE account_id = " + st.Arg(s.account) +
		" AND ts >= " + st.Arg(w.from) + " AND ts < " + st.Arg(w.to) +
		" AND " + st.ListTime() + " >= " + st.Arg(w.oldest) +
		" AND " + st.ListTime() + " <= " + st.Arg(w.newest)
	if s.days != nil {
		sql += " AND " + st.AnyTerm(s.days)
	}
	if after != nil {
		id, ok := archive.ParseUUID(after.RequestID)
		if !ok {
			return "", nil, archive.BadID(after.RequestID)
		}
		// As a pair: the primary key has both, in this order.
		sql += " AND (at, request_id) < (" + st.Arg(schema.Nanos(after.At)) + ", " + st.Arg(id) + ")"
	}

	if s.ids != nil {
		sql += " AND request_id = ANY(" + st.Arg(s.ids) + "::uuid[])"
	}
	p := st.Where(s.query)
	s.exact = p.Exact
	if p.SQL != "" {
		sql += " AND " + p.SQL
	}

	return sql, st, nil
}

const newestFirst = " ORDER BY at DESC, request_id DESC LIMIT "

// step visits up to limit rows of a window and returns how many it read.
func (s *scan) step(ctx context.Context, w window, after *query.Position, limit int) (n int, err error) {
	sql, st, err := s.fromClause(w, after)
	if err != nil {
		return 0, err
	}

	sql = "SELECT at, request_id, line" + sql + newestFirst + st.Arg(limit)
	rows, err := s.tx.Query(ctx, sql, s.planned(st)...)
	if err != nil {
		return 0, err
	}

	if !s.query.Decides() {
		return s.stepPlaces(ctx, rows)
	}

	defer rows.Close()
	for !s.done && rows.Next() {
		n++
		if err := rows.Scan(&s.at, &s.id, (*borrowed)(&s.line)); err != nil {
			return n, err
		}
		s.seen, s.bytes = s.seen+1, s.bytes+len(s.line)
		if err := s.visitIfMatch(ctx, nil); err != nil {
			return n, err
		}
	}

	// The error of a query that we left early is that we left it.
	if s.done {
		rows.Close()
		return n, nil
	}

	return n, rows.Err()
}

// borrowed is a []byte that aliases pgx's read buffer. It is valid until the next row.
type borrowed []byte

// ScanBytes implements pgtype.BytesScanner.
func (b *borrowed) ScanBytes(v []byte) error { *b = v; return nil }

// visitIfMatch visits the current row if it matches. It asks the query only if SQL could not
// decide.
func (s *scan) visitIfMatch(ctx context.Context, body func() ([]byte, error)) error {
	// Afresh, because the row before may have been kept.
	s.row = wire.Row{}

	if !s.exact {
		row, err := s.fill(s.needs | rowcode.PlaceColumns)
		if err != nil {
			return err
		}

		matches, err := s.judge.Matches(ctx, row, body,
			func() (map[string]string, error) { return s.metadata(ctx) })
		if s.judge.Stopped != nil {
			s.done = true
		}
		if err != nil || !matches {
			return err
		}
	}

	more, err := s.visit(s.fill)
	s.done = s.done || !more

	return err
}

// fill returns the current row with the columns that are wanted. Place columns cost nothing;
// the others have to be decoded from the line.
func (s *scan) fill(want rowcode.Columns) (*wire.Row, error) {
	row := &s.row
	row.ListTime = time.Unix(0, s.at).UTC()
	if want.Has(rowcode.ColumnID) && row.RequestID == "" {
		row.RequestID = s.id.String()
		row.ID = row.RequestID
	}
	// Counting and sorting by time end here, without a look at the line.
	if want&^rowcode.PlaceColumns == 0 {
		return row, nil
	}

	if err := rowcode.Decode(s.line, want, row); err != nil {
		return nil, damaged("the row of record "+s.id.String(), err)
	}

	return row, nil
}

// planned returns a statement's arguments, and tells pgx to have it planned again with them:
// which index is best depends on their values, and a generic plan would not know them.
func (s *scan) planned(st *filter.Statement) []any {
	// Where the tables are spread, the account's node plans again anyway. A prepared statement
	// spares the coordinator its part.
	if s.db.spread {
		return st.Args
	}

	return append([]any{pgx.QueryExecModeCacheDescribe}, st.Args...)
}
