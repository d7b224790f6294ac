package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
	"promptspool/spool/archive/postgres/schema"
)

// Retain deletes what is beyond the retention, without tombstones, and returns how many
// records it deleted.
//
// By age, a week goes when all of it is too old, by dropping its partitions: a record may
// therefore stay up to a week longer.
func (db *DB) Retain(ctx context.Context, r archive.Retention) (dropped int64, err error) {
	if r.Age > 0 {
		dropped, err = db.dropOlder(ctx, db.now().Add(-r.Age))
	}
	if err != nil || r.Bytes <= 0 {
		return dropped, err
	}

	// Only accounts beyond the bound, which account_weeks tells without reading records.
	accounts, err := connection.QueryRows(ctx, db.pool, func(a *string) []any { return []any{a} }, `
		SELECT account_id FROM account_weeks
		GROUP BY account_id HAVING sum(bytes) > $1 ORDER BY account_id`, r.Bytes)
	for _, account := range accounts {
		if err == nil {
			dropped, err = db.dropBeyond(ctx, account, r.Bytes, dropped)
		}
	}

	return dropped, err
}

// dropOlder drops the weeks that are too old. A week stays if something in it arrived late,
// or lies in the default partition; then only its records that are too old are deleted.
func (db *DB) dropOlder(ctx context.Context, cutoff time.Time) (dropped int64, err error) {
	type accountInWeek struct {
		week    time.Time
		account string
	}
	old, err := connection.QueryRows(ctx, db.pool,
		func(a *accountInWeek) []any { return []any{&a.week, &a.account} }, `
		SELECT week, account_id FROM account_weeks
		GROUP BY week, account_id HAVING min(oldest) < $1 OR sum(orphans) <> 0
		ORDER BY week, account_id`, nanosOf(cutoff))

	gone := make(map[time.Time]bool) // by week; has an entry once dropping it was tried
	for _, a := range old {
		_, end := schema.WeekEnds(a.week)
		past := end.InfinityModifier == 0 && !end.Time.After(cutoff)
		if err != nil || !past && db.tables.Bounded(a.week) {
			continue
		}

		n := int64(0)
		// A week is the same for all accounts, so it is tried once.
		if _, tried := gone[a.week]; !tried && past {
			if n, gone[a.week], err = db.dropWeek(ctx, a.week, cutoff); err != nil {
				return dropped, err
			}
			dropped += n
		}
		if !gone[a.week] {
			n, err = db.deleteOlder(ctx, a.account, a.week, cutoff)
			dropped += n
		}
	}

	return dropped, err
}

// dropWeek drops the partitions of a week if nothing in them has to stay. Writers to the week
// wait for it, and then find its records gone.
func (db *DB) dropWeek(ctx context.Context, week, cutoff time.Time) (dropped int64, gone bool, err error) {
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		dropped, gone = 0, false
		exists, err := schema.LockWeek(ctx, tx, week)
		if err != nil || !exists {
			return err
		}

		// Only now, behind the locks, do the counts include every write to the week.
		stays := false
		if err := tx.QueryRow(ctx, `
			SELECT coalesce(max(newest) >= $2, false) OR sum(orphans) <> 0, coalesce(sum(records + spans), 0)::bigint
			FROM account_weeks WHERE week = $1`, week, nanosOf(cutoff)).
			Scan(&stays, &dropped); err != nil || stays {
			dropped = 0
			return err
		}

		// Summaries that touch the week go too: they would still count its rows.
		gone = true
		if _, err := tx.Exec(ctx, `
			DELETE FROM summaries s
			USING (SELECT account_id, min(list_oldest) AS oldest, max(list_newest) AS newest
				FROM account_weeks WHERE week = $1 GROUP BY account_id) w
			WHERE s.account_id = w.account_id AND s.newest >= w.oldest AND s.bottom <= w.newest`,
			week); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_weeks WHERE week = $1`, week); err != nil {
			return err
		}
		return schema.DropWeek(ctx, tx, week)
	})

	// The next write creates partitions again if a record of that week arrives late.
	if gone {
		db.tables.Forget()
	}

	return dropped, gone && err == nil, err
}

// deleteOlder deletes an account's records of a week that are too old, row by row, and the
// orphans among them.
func (db *DB) deleteOlder(ctx context.Context, account string, week, cutoff time.Time) (dropped int64, err error) {
	from, to := schema.WeekEnds(week)
	// ts keeps each query to one partition; those that are deleted are not found again.
	for err == nil {
		var ids []uuid
		ids, err = connection.QueryRows(ctx, db.pool, func(id *uuid) []any { return []any{id} }, `
			(SELECT request_id FROM records
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND accepted < $4
			LIMIT $5)
			UNION ALL
			(SELECT request_id FROM record_states
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at < $4
			ORDER BY span_at LIMIT $5)`, account, from, to, nanosOf(cutoff), oldestMax)
		if err != nil || len(ids) == 0 {
			break
		}

		// By id, under the account's lock: an event may just be on its way to one of them.
		n, e := db.deleteSteps(ctx, account, ids)
		dropped, err = dropped+n, e
	}

	if err == nil {
		var n wire.Deleted
		n, err = db.deleteOrphans(ctx, account, func(s *archive.State) bool {
			return s.History[len(s.History)-1].At.Before(cutoff)
		}, false)
		dropped += n.Records
	}

	return dropped, err
}

// deleteSteps deletes records, without tombstones, some in each transaction.
func (db *DB) deleteSteps(ctx context.Context, account string, ids []uuid) (deleted int64, err error) {
	for step := range slices.Chunk(ids, deleteStep) {
		n, err := db.deleteRecords(ctx, account, texts(step), nil, false)
		if deleted += n.Records; err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

func texts(ids []uuid) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// dropBeyond deletes an account's oldest records until it holds at most limit bytes.
func (db *DB) dropBeyond(ctx context.Context, account string, limit, dropped int64) (int64, error) {
	var oldest []uuid
	for {
		var records, bytes int64
		err := db.pool.QueryRow(ctx, nil, []any{&records, &bytes}, `
			SELECT coalesce(sum(records + spans), 0)::bigint, coalesce(sum(bytes), 0)::bigint
			FROM account_weeks WHERE account_id = $1`, account)
		if err != nil || bytes <= limit || records == 0 {
			return dropped, err
		}

		// As many records as the excess has at the account's mean size: a step deletes at most
		// a few too many or too few.
		excess := int(min(max((bytes-limit)*records/bytes, 1), oldestMax))
		if len(oldest) == 0 {
			oldest, err = db.oldest(ctx, account, excess)
		}
		if err != nil || len(oldest) == 0 {
			return dropped, err
		}

		step := oldest[:min(excess, deleteStep, len(oldest))]
		oldest = oldest[len(step):]
		n, err := db.deleteRecords(ctx, account, texts(step), nil, false)
		if dropped += n.Records; err != nil {
			return dropped, err
		}
	}
}

// oldestMax is how many of an account's oldest records are looked up together. Lists go by
// another time, so that takes a look at all rows of a week.
const oldestMax = 50 * deleteStep

// oldest returns the ids of an account's n records and spans with the lowest order times.
func (db *DB) oldest(ctx context.Context, account string, n int) (ids []uuid, err error) {
	type aged struct {
		at int64
		id uuid
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT week, min(oldest) FROM account_weeks
			WHERE account_id = $1 GROUP BY week HAVING min(oldest) IS NOT NULL
			ORDER BY min(oldest)`, account)
		if err != nil {
			return err
		}
		weeks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (w weekSpan, err error) {
			err = row.Scan(&w.week, &w.oldest)
			return w, err
		})
		if err != nil {
			return err
		}

		// From the old end on, partition by partition, until no other can have an older one.
		var found []aged
		for _, w := range weeks {
			if len(found) == n && w.oldest > found[n-1].at {
				break
			}
			from, to := schema.WeekEnds(w.week)
			rows, err := tx.Query(ctx, `
				(SELECT accepted, request_id FROM records
				WHERE account_id = $1 AND ts >= $2 AND ts < $3
				ORDER BY 1, 2 LIMIT $4)
				UNION ALL
				(SELECT span_at, request_id FROM record_states
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at IS NOT NULL
				ORDER BY 1, 2 LIMIT $4)`,
				account, from, to, n)
			if err != nil {
				return err
			}

			var r aged
			if _, err := pgx.ForEachRow(rows, []any{&r.at, &r.id}, func() error {
				found = append(found, r)
				return nil
			}); err != nil {
				return err
			}
			sort.Slice(found, func(i, j int) bool {
				a, b := &found[i], &found[j]
				return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:])) < 0
			})
			found = found[:min(n, len(found))]
		}

		ids = nil
		for _, r := range found {
			ids = append(ids, r.id)
		}
		return nil
	})

	return ids, err
}
