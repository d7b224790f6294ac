package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// partitioned are the tables of which each week has its own.
var partitioned = []string{"record_states", "record_deltas", "records", "record_bodies"}

// Which weeks get a partition: those from so long ago, which an import may bring, to so far ahead. Ids beyond lie in the partition
// without bounds, until their week comes.
const (
	weeksBack  = 520
	weeksAhead = 4
)

// partitions knows which weeks have theirs.
type partitions struct {
	mu    sync.Mutex
	known map[time.Time]bool // by their Monday; under mu
}

// bounded says whether a week gets a partition of its own.
func (db *DB) bounded(week time.Time) bool {
	today := weekOf(db.now())
	return !week.Before(firstWeek) && week.Before(endOfWeek) && !week.Before(today.Add(-weeksBack*weekLength)) && !week.After(today.Add(weeksAhead*weekLength))
}

// ensure makes the partitions of weeks that have none, before something is written that belongs there.
func (db *DB) ensure(ctx context.Context, weeks []time.Time) error {
	var missing []time.Time
	db.partitions.mu.Lock()
	for _, week := range weeks {
		if !db.partitions.known[week] && db.bounded(week) {
			missing = append(missing, week)
		}
	}
	db.partitions.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	there, err := db.listPartitions(ctx)
	if err != nil {
		return err
	}
	for _, week := range missing {
		if !there[week] {
			if err := db.makePartition(ctx, week); err != nil {
				return err
			}
		}
	}
	db.partitions.mu.Lock()
	defer db.partitions.mu.Unlock()
	for _, week := range missing {
		there[week] = true
	}
	db.partitions.known = there
	return nil
}

// forget makes the next write look anew which partitions there are.
func (p *partitions) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = nil
}

// makeAhead makes the partitions of the weeks to come, so that no write has to.
func (db *DB) makeAhead(ctx context.Context) error {
	var weeks []time.Time
	for n := range time.Duration(weeksAhead + 1) {
		weeks = append(weeks, weekOf(db.now()).Add(n*weekLength))
	}
	db.partitions.forget()
	return db.ensure(ctx, weeks)
}

const partitionSuffix = "_w"

func partitionName(table string, week time.Time) string {
	return table + partitionSuffix + week.Format("20060102")
}

// listPartitions are the weeks of which all tables have a partition.
func (db *DB) listPartitions(ctx context.Context) (map[time.Time]bool, error) {
	tables := make(map[time.Time]int)
	err := db.view(ctx, func(tx pgx.Tx) error {
		clear(tables)
		rows, err := tx.Query(ctx, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = ANY(SELECT to_regclass(name) FROM unnest($1::text[]) name)`, partitioned)
		if err != nil {
			return err
		}
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

// makePartition makes the partitions of one week, one server at a time. What lies in the partition without bounds exportSteps in.
func (db *DB) makePartition(ctx context.Context, week time.Time) error {
	return db.change(ctx, true, func(tx pgx.Tx) error {
		for _, sql := range []string{
			fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, partitionLock),
			`SET LOCAL lock_timeout = '3s'`, // others wait behind whoever waits for this lock
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
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
	from, to := week.Format(time.DateOnly), week.Add(weekLength).Format(time.DateOnly)
	there, strays := false, false
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil || there {
		return err
	}
	within := fmt.Sprintf(`ts >= '%s 00:00:00+00' AND ts < '%s 00:00:00+00'`, from, to)
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM `+table+`_default WHERE `+within+`)`).Scan(&strays); err != nil {
		return err
	}
	bounds := fmt.Sprintf(`FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')`, from, to)
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
