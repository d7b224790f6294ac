package postgres

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"promptspool/spool/database/postgres/schema"
)

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
func weekSpans(ctx context.Context, tx reader, account string) (all []weekSpan, err error) {
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
