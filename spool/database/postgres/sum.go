package postgres

import (
	"context"
	"errors"
	"math"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Sum passes every row that matches to sums, by itself or in a summary; see archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q query.Query, want rowcode.Columns, sums query.Sums) error {
	return db.passOnce(ctx, func(tx pgx.Tx, begin func()) (err error) {
		// One snapshot for rows and summaries: a change removes the summary with the same commit.
		u := summing{db: db, tx: tx, sums: sums, begin: begin}
		u.scan, err = db.newScan(ctx, tx, account, &q)
		if err != nil {
			return err
		}

		u.scan.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(want)
			if err == nil {
				begin()
				err = sums.Add(row)
			}
			return err == nil, err
		}
		return u.run(ctx)
	})
}

// summing walks down a list: over rows, and over summaries where every row of a segment
// counts.
type summing struct {
	db    *DB
	tx    pgx.Tx
	scan  *scan
	sums  query.Sums
	begin func() // called before sums counts anything
}

// summariesStep is how many summaries are in memory at a time, of at most 256 KiB each.
const summariesStep = 32

func (u *summing) run(ctx context.Context) error {
	oldest, newest := u.scan.oldest, u.scan.newest
	if err := u.announceOldest(ctx, oldest, newest); err != nil {
		return err
	}

	// From the top down, in turns: rows that no summary has, then a segment that one has.
	for top := newest; ; {
		part, err := u.summaries(ctx, oldest, top)
		if err != nil {
			return err
		}

		for _, s := range part {
			// The rows above the segment have no summary.
			if err := u.rows(ctx, s.newest+1, top); err != nil {
				return err
			}

			merged := false
			if len(s.summary) > 0 {
				u.begin()
				merged, err = u.sums.Merge(s.summary, true)
				if errors.Is(err, query.ErrSummary) {
					err = damaged("a summary", err)
				}
			}
			// An empty summary, or one that cannot answer this: read its rows.
			if err == nil && !merged {
				err = u.rows(ctx, s.oldest, s.newest)
			}
			if err != nil {
				return err
			}
			// Between bottom and the oldest row there is none, so the walk skips that.
			top = s.bottom - 1
		}

		if len(part) < summariesStep {
			return u.rows(ctx, oldest, top)
		}
	}
}

// rows counts the rows between two order times, both included.
func (u *summing) rows(ctx context.Context, oldest, newest int64) error {
	if oldest > newest {
		return nil
	}

	u.scan.oldest, u.scan.newest = oldest, newest
	return u.scan.run(ctx, math.MaxInt)
}

// announceOldest tells sums how far back the summaries go, so that the length of its buckets is
// known from the start.
func (u *summing) announceOldest(ctx context.Context, from, to int64) error {
	var oldest *int64
	err := u.tx.QueryRow(ctx, `
		SELECT min(oldest) FROM summaries
		WHERE account_id = $1 AND oldest >= $2 AND newest <= $3`,
		u.scan.account, from, to).Scan(&oldest)
	// The transaction may not be repeated from here on: sums has been told something.
	if err == nil && oldest != nil {
		u.begin()
		u.sums.Reach(time.Unix(0, *oldest).UTC())
	}

	return err
}

type storedSummary struct {
	segment
	summary []byte
}

// summaries reads the next summaries whose rows are all between two order times.
func (u *summing) summaries(ctx context.Context, from, to int64) ([]storedSummary, error) {
	rows, _ := u.tx.Query(ctx, `
		SELECT newest, oldest, bottom, summary FROM summaries
		WHERE account_id = $1 AND newest <= $2 AND oldest >= $3
		ORDER BY newest DESC LIMIT $4`,
		u.scan.account, to, from, summariesStep)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s storedSummary, err error) {
		err = row.Scan(&s.newest, &s.oldest, &s.bottom, &s.summary)
		return s, err
	})
}

// sortedOffsetMax bounds the pages that are made of top rows: those of a late page are in the
// rest of nearly every segment.
const sortedOffsetMax = 10_000

// topSegment is a segment with the first rows of an order.
type topSegment struct {
	segment
	topRows []byte         // nil once they were read
	last    query.Position // of topRows; more rows follow
}

// sorts reports whether top rows can answer: all rows of a span are wanted, in an order that
// they have.
func (s *scan) sorts() bool {
	q := s.query
	return q.Order.HasTops() && q.Spanned() && q.Offset <= sortedOffsetMax
}

// sorted finds a page in an order other than time: of each segment it takes the top rows, and
// it reads only segments whose other rows may be on the page.
func (s *scan) sorted(ctx context.Context) (query.Page, error) {
	all := *s.query
	all.After = nil
	f := query.NewFinder(s.query)
	f.AnyOrder()
	if !all.Filtered() {
		f.Total(s.records())
	}
	s.query = &all

	oldest, top := bounds(&all)
	rest, err := s.readTopRows(ctx, f, oldest, top)
	if err != nil {
		return query.Page{}, err
	}
	if err := s.readRest(ctx, f, rest); err != nil {
		return query.Page{}, err
	}
	return s.finish(ctx, f)
}

// readTopRows reads the top rows of all segments between two list times, and the rows between those
// segments. It returns the segments that have more rows.
func (s *scan) readTopRows(ctx context.Context, f *query.Finder, oldest, top int64) (rest []topSegment, err error) {
	visit := func(p query.Position) {
		f.Pass(1)
		f.VisitPlace(p)
	}
	for {
		part, err := s.topSegments(ctx, oldest, top)
		if err != nil {
			return nil, err
		}

		for _, t := range part {
			list, err := query.ReadTops(t.topRows, s.query.Order)
			if err != nil {
				return nil, damaged("the top rows of a summary", err)
			}
			// It is older than the order, so its rows are read with those above it.
			if len(list.Places) == 0 {
				continue
			}
			// Above the segment are rows without a summary, or too heavy for top rows.
			if err := s.between(ctx, t.newest+1, top, visit); err != nil {
				return nil, err
			}
			top = t.bottom - 1

			f.Pass(list.Rows)
			for _, p := range list.Places {
				f.VisitPlace(p)
			}
			if n := len(list.Places); n < list.Rows {
				t.topRows, t.last = nil, list.Places[n-1]
				rest = append(rest, t)
			}
		}

		if len(part) < s.db.summarizing.step {
			return rest, s.between(ctx, oldest, top, visit)
		}
	}
}

// readRest reads the rows after the top rows of segments that may be on the page.
func (s *scan) readRest(ctx context.Context, f *query.Finder, rest []topSegment) error {
	// The best first: they may show that no other is needed.
	order := s.query.Order
	sort.Slice(rest, func(i, j int) bool { return order.Compare(rest[i].last, rest[j].last) < 0 })

	for _, part := range rest {
		if !f.Wants(part.last) {
			return nil
		}

		err := s.between(ctx, part.oldest, part.newest, func(p query.Position) {
			if order.Compare(p, part.last) > 0 {
				f.VisitPlace(p)
			}
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// between visits the positions of the rows between two list times, both included.
func (s *scan) between(ctx context.Context, oldest, newest int64, visit func(query.Position)) error {
	if oldest > newest {
		return nil
	}

	order := s.query.Order
	if d := rowcode.Define(order.Column()); d.SQL != "" && d.Number() != nil {
		return s.numbersBetween(ctx, oldest, newest, d.SQL, visit)
	}
	s.visit = func(fill query.Fill) (bool, error) {
		row, err := fill(rowcode.PlaceColumns | rowcode.ColumnsOf(order.Column()))
		if err == nil {
			visit(order.PositionOf(row))
		}
		return true, err
	}
	s.oldest, s.newest = oldest, newest

	return s.run(ctx, math.MaxInt)
}

// numbersBetween is between for an order by a column of the database: lines, which are most of a
// row, stay there.
func (s *scan) numbersBetween(
	ctx context.Context, oldest, newest int64, column string, visit func(query.Position),
) error {
	for w := range windows(s.weeks, oldest, newest) {
		sql, st, err := s.fromClause(w, nil)
		if err != nil {
			return err
		}
		rows, _ := s.tx.Query(ctx, "SELECT at, request_id, "+column+"::float8"+sql, s.planned(st)...)
		var number *float64
		if _, err := pgx.ForEachRow(rows, []any{&s.at, &s.id, &number}, func() error {
			p := query.Position{At: time.Unix(0, s.at).UTC(), RequestID: s.id.String()}
			if number != nil {
				p.Value = query.SortValue{Known: true, Number: *number}
			}
			visit(p)
			return nil
		}); err != nil {
			return err
		}
	}

	return nil
}

// topSegments reads the next segments that have top rows, newest first. All of their rows are between
// two list times.
func (s *scan) topSegments(ctx context.Context, oldest, newest int64) ([]topSegment, error) {
	rows, _ := s.tx.Query(ctx, `
		SELECT newest, oldest, bottom, top_rows FROM summaries
		WHERE account_id = $1 AND newest <= $2 AND oldest >= $3 AND octet_length(top_rows) > 0
		ORDER BY newest DESC LIMIT $4`,
		s.account, newest, oldest, s.db.summarizing.step)
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t topSegment, err error) {
		err = row.Scan(&t.newest, &t.oldest, &t.bottom, &t.topRows)
		return t, err
	})
}
