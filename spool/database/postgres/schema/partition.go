package schema

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"promptspool/spool/database/postgres/connection"
)

// partitioned are the tables that have a partition for each week.
var partitioned = []string{"record_states", "record_deltas", "record_calls", "records", "record_bodies", "rollups"}

// The weeks around today that get a partition: back to what an import may bring, and some
// ahead. Ids outside are in the default partition until their week comes.
const (
	weeksBack  = 520
	weeksAhead = 4
)

// Bounded reports whether a week gets its own partition.
func (t *Tables) Bounded(week time.Time) bool {
	if week.Before(firstWeek) || !week.Before(endOfWeek) {
		return false
	}

	today := WeekOf(t.now())
	return !week.Before(today.Add(-weeksBack*weekLength)) && !week.After(today.Add(weeksAhead*weekLength))
}

// Ensure creates missing partitions of weeks that are about to be written to.
func (t *Tables) Ensure(ctx context.Context, weeks []time.Time) error {
	// Asked for each write, so it is answered from memory nearly always.
	var missing []time.Time
	t.mu.Lock()
	for _, week := range weeks {
		if !t.known[week] && t.Bounded(week) {
			missing = append(missing, week)
		}
	}
	t.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}

	// Another server may have made them; without the lock, because it takes a round trip.
	exists, err := t.listPartitions(ctx)
	if err != nil {
		return err
	}
	for _, week := range missing {
		if exists[week] {
			continue
		}
		if err := t.makePartition(ctx, week); err != nil {
			return err
		}
		exists[week] = true
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = exists

	return nil
}

// Forget empties the cache: the next write asks the database which partitions exist.
func (t *Tables) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
}

// MakeAhead creates the partitions of the next weeks. Writes then do not have to wait for
// that when a week begins.
func (t *Tables) MakeAhead(ctx context.Context) error {
	var weeks []time.Time
	for n := range time.Duration(weeksAhead + 1) {
		weeks = append(weeks, WeekOf(t.now()).Add(n*weekLength))
	}

	t.Forget()
	return t.Ensure(ctx, weeks)
}

const partitionSuffix = "_w"

func partitionName(table string, week time.Time) string {
	return table + partitionSuffix + week.Format("20060102")
}

// listPartitions returns the weeks of which every table has a partition.
func (t *Tables) listPartitions(ctx context.Context) (map[time.Time]bool, error) {
	tables := make(map[time.Time]int)
	err := t.pool.View(ctx, func(tx pgx.Tx) error {
		clear(tables)
		// Catalogs only, by index: it takes no lock on the tables.
		rows, _ := tx.Query(ctx, `
			SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = ANY(SELECT to_regclass(name) FROM unnest($1::text[]) name)`, partitioned)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, name := range names {
			if week, ok := weekOfPartition(name); ok {
				tables[week]++
			}
		}
		return err
	})

	weeks := make(map[time.Time]bool)
	for week, n := range tables {
		weeks[week] = n == len(partitioned)
	}

	return weeks, err
}

func weekOfPartition(name string) (time.Time, bool) {
	i := strings.LastIndex(name, partitionSuffix)
	if i < 0 {
		return time.Time{}, false
	}

	week, err := time.Parse("20060102", name[i+len(partitionSuffix):])
	return week, err == nil
}

// makePartition creates the partitions of one week, one server at a time. Rows of that week
// in the default partition move into them.
func (t *Tables) makePartition(ctx context.Context, week time.Time) error {
	return t.pool.Change(ctx, true, func(tx pgx.Tx) error {
		for _, sql := range []string{
			fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, connection.PartitionLock),
			`SET LOCAL lock_timeout = '3s'`, // everybody else queues after a lock that waits
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}

		// All in one transaction: a week has all of its partitions or none.
		for _, table := range partitioned {
			if err := makePartitionOf(ctx, tx, table, week); err != nil {
				return err
			}
		}
		return nil
	})
}

func makePartitionOf(ctx context.Context, tx pgx.Tx, table string, week time.Time) error {
	name := partitionName(table, week)
	exists := false
	err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&exists)
	if err != nil || exists {
		return err
	}

	from, to := week.Format(time.DateOnly), week.Add(weekLength).Format(time.DateOnly)
	within := fmt.Sprintf(`ts >= '%s 00:00:00+00' AND ts < '%s 00:00:00+00'`, from, to)
	bounds := fmt.Sprintf(`FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')`, from, to)

	// Ids from the future were written before their week had a partition.
	strays := false
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+table+`_default WHERE `+within+`)`).
		Scan(&strays); err != nil {
		return err
	}

	// PostgreSQL rejects a partition whose rows are in the default one. They move while the
	// new table is not attached yet; the lock keeps others from adding more.
	steps := []string{`CREATE TABLE ` + name + ` PARTITION OF ` + table + ` ` + bounds}
	if strays {
		steps = []string{
			`LOCK TABLE ` + table + ` IN SHARE ROW EXCLUSIVE MODE`,
			`CREATE TABLE ` + name + ` (LIKE ` + table + ` INCLUDING ALL)`,
			`INSERT INTO ` + name + ` SELECT * FROM ` + table + `_default WHERE ` + within,
			`DELETE FROM ` + table + `_default WHERE ` + within,
			`ALTER TABLE ` + table + ` ATTACH PARTITION ` + name + ` ` + bounds,
		}
	}
	for _, sql := range steps {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}

	return nil
}

// LockWeek locks the partitions of a week. exists is false if one of them is missing.
func LockWeek(ctx context.Context, tx pgx.Tx, week time.Time) (exists bool, err error) {
	for _, sql := range []string{
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, connection.PartitionLock),
		`SET LOCAL lock_timeout = '3s'`, // everybody else queues after a waiting ACCESS EXCLUSIVE
	} {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return false, err
		}
	}

	for _, table := range partitioned {
		name := partitionName(table, week)
		err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&exists)
		if err != nil || !exists {
			return false, err
		}
		// Only the partition for now: DROP TABLE locks the parent too, at the end and briefly.
		if _, err := tx.Exec(ctx, `LOCK TABLE `+name+` IN ACCESS EXCLUSIVE MODE`); err != nil {
			return false, err
		}
	}

	return true, nil
}

// DropWeek drops the partitions of a week, which LockWeek has locked.
func DropWeek(ctx context.Context, tx pgx.Tx, week time.Time) error {
	for _, table := range partitioned {
		// One statement for each, because Citus takes no more.
		if _, err := tx.Exec(ctx, `DROP TABLE `+partitionName(table, week)); err != nil {
			return err
		}
	}
	return nil
}

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
	// Go's zero time is a Monday.
	return ts.Truncate(weekLength)
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
