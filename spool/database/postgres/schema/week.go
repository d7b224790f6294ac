package schema

import (
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

const weekLength = 7 * 24 * time.Hour

// All weeks before firstWeek count as one week, and so do all from endOfWeek on. Such ids were
// not made by a clock, and each could otherwise be in its own week.
var (
	firstWeek = time.Date(2020, 1, 6, 0, 0, 0, 0, time.UTC)
	endOfWeek = time.Date(2099, 12, 28, 0, 0, 0, 0, time.UTC)
)

// WeekOf returns the Monday of the week of an id's time.
func WeekOf(ts time.Time) time.Time {
	// Each of the two ends is one week without its own partition; see Bounded.
	switch {
	case ts.Before(firstWeek):
		return firstWeek.Add(-weekLength)
	case !ts.Before(endOfWeek):
		return endOfWeek
	}
	return ts.Truncate(weekLength) // Go's zero time is a Monday
}

// WeekEnds returns the times between which the ids of a week are; to is excluded. The weeks
// outside firstWeek and endOfWeek have no bound on one side.
func WeekEnds(week time.Time) (from, to pgtype.Timestamptz) {
	from = pgtype.Timestamptz{Time: week, Valid: true}
	to = pgtype.Timestamptz{Time: week.Add(weekLength), Valid: true}
	if week.Before(firstWeek) {
		from = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	if !week.Before(endOfWeek) {
		to = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	return from, to
}
