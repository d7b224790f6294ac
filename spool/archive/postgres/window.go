package postgres

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// weekSpan says when the records of a week's ids were accepted: mostly in that week, but an id may be any.
type weekSpan struct {
	week           time.Time
	oldest, newest int64
	records        int
}

// window is a part of an account's list, and the partitions that it lies in.
type window struct {
	oldest, newest int64 // order times, both included
	from, to       pgtype.Timestamptz
}

// spans reads when the account's records were accepted, and how many they are.
func spans(ctx context.Context, tx pgx.Tx, account string) (all []weekSpan, err error) {
	rows, err := tx.Query(ctx, `SELECT week, min(oldest), max(newest), sum(records)::bigint FROM account_weeks WHERE account_id = $1 GROUP BY week HAVING max(newest) IS NOT NULL`, account)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s weekSpan, err error) {
		err = row.Scan(&s.week, &s.oldest, &s.newest, &s.records)
		return s, err
	})
}

// windows cuts the list between two order times into windows, newest first, such that each partition is in as few of them as can be. The
// first is the smallest; each one behind it is larger than the one before, so that an answer that lies near the top needs few partitions,
// and one that lies anywhere needs few questions.
func windows(weeks []weekSpan, oldest, newest int64) iter.Seq[window] {
	return func(yield func(window) bool) {
		pieces := cut(weeks, oldest, newest)
		for n := 1; len(pieces) > 0; n *= 2 {
			n = min(n, len(pieces))
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

// cut makes the smallest pieces of a list, newest first: within each the same weeks have records.
func cut(weeks []weekSpan, oldest, newest int64) (pieces []window) {
	var ends []int64 // where a piece begins that lies above it
	for _, w := range weeks {
		if w.newest < oldest || w.oldest > newest {
			continue
		}
		ends = append(ends, max(w.oldest, oldest))
		if w.newest < newest {
			ends = append(ends, w.newest+1)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	top := newest
	for _, bottom := range slices.Backward(ends) {
		p := window{oldest: bottom, newest: top}
		found := false
		for _, w := range weeks {
			if w.newest < bottom || w.oldest > top {
				continue
			}
			from, to := weekEnds(w.week)
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

func earlier(a, b pgtype.Timestamptz) pgtype.Timestamptz {
	if a.InfinityModifier == pgtype.NegativeInfinity || b.InfinityModifier != pgtype.NegativeInfinity && a.Time.Before(b.Time) {
		return a
	}
	return b
}

func later(a, b pgtype.Timestamptz) pgtype.Timestamptz {
	if a.InfinityModifier == pgtype.Infinity || b.InfinityModifier != pgtype.Infinity && a.Time.After(b.Time) {
		return a
	}
	return b
}

// Order times of a list without bounds.
const (
	nanosLeast = math.MinInt64 + 1
	nanosMost  = math.MaxInt64 - 1
)
