package postgres

import (
	"context"
	"math"
	"sort"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// sortedOffsetMax bounds the pages that are made of tops: those of a late page are in the
// rest of nearly every stretch.
const sortedOffsetMax = 10_000

// toppedStretch is a stretch with the first rows of an order.
type toppedStretch struct {
	stretch
	tops []byte         // NULL or empty: they are not known
	last query.Position // of tops; more rows follow
}

// sorts reports whether tops can answer: all rows of a span are wanted, in an order other
// than time.
func (s *scan) sorts() bool {
	q := s.query
	return q.Order.By != "" && q.Spanned() && q.Offset <= sortedOffsetMax
}

// sorted finds a page in an order other than time: of each stretch it takes the tops, and
// it reads only stretches whose other rows may be on the page.
func (s *scan) sorted(ctx context.Context) (query.Page, error) {
	all := *s.query
	all.After = nil
	f := query.NewFinder(s.query)
	f.AnyOrder()
	if !all.Filtered() {
		f.Total(s.records())
	}
	s.query, s.visit = &all, f.Visit

	oldest, top := bounds(&all)
	stretches, err := s.topped(ctx, oldest, top)
	if err != nil {
		return query.Page{}, err
	}

	// Rows without a summary, and stretches whose tops are not known, are read.
	var rest []toppedStretch
	for _, part := range stretches {
		if err := s.between(ctx, part.newest+1, top); err != nil {
			return query.Page{}, err
		}
		top = part.bottom - 1
		if len(part.tops) == 0 {
			if err := s.between(ctx, part.oldest, part.newest); err != nil {
				return query.Page{}, err
			}
			continue
		}

		list, err := query.ReadTops(part.tops, all.Order)
		if err != nil {
			return query.Page{}, damaged("the tops of a summary", err)
		}
		f.Pass(list.Rows)
		for _, p := range list.Places {
			f.VisitPlace(p)
		}
		if n := len(list.Places); n < list.Rows {
			part.last = list.Places[n-1]
			rest = append(rest, part)
		}
	}
	if err := s.between(ctx, oldest, top); err != nil {
		return query.Page{}, err
	}

	if err := s.readRest(ctx, f, rest); err != nil {
		return query.Page{}, err
	}
	return s.finish(ctx, f)
}

// readRest reads the rows behind the tops of stretches that may be on the page.
func (s *scan) readRest(ctx context.Context, f *query.Finder, rest []toppedStretch) error {
	// The best first: they may show that no other is needed.
	order := s.query.Order
	sort.Slice(rest, func(i, j int) bool { return order.Compare(rest[i].last, rest[j].last) < 0 })

	for _, part := range rest {
		if !f.Wants(part.last) {
			return nil
		}

		s.visit = func(fill query.Fill) (bool, error) {
			row, err := fill(rowcode.PlaceColumns | rowcode.ColumnsOf(order.Column()))
			if err != nil {
				return false, err
			}
			if p := order.PositionOf(row); order.Compare(p, part.last) > 0 {
				f.VisitPlace(p)
			}
			return true, nil
		}
		if err := s.between(ctx, part.oldest, part.newest); err != nil {
			return err
		}
	}

	return nil
}

// between visits the rows between two list times, both included.
func (s *scan) between(ctx context.Context, oldest, newest int64) error {
	if oldest > newest {
		return nil
	}

	s.oldest, s.newest = oldest, newest
	return s.run(ctx, math.MaxInt)
}

// topped reads the stretches whose rows are all between two list times, newest first.
func (s *scan) topped(ctx context.Context, oldest, newest int64) ([]toppedStretch, error) {
	rows, err := s.tx.Query(ctx, `
		SELECT newest, oldest, bottom, tops FROM summaries
		WHERE account_id = $1 AND newest <= $2 AND oldest >= $3
		ORDER BY newest DESC`,
		s.account, newest, oldest)
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (t toppedStretch, err error) {
		err = row.Scan(&t.newest, &t.oldest, &t.bottom, &t.tops)
		return t, err
	})
}
