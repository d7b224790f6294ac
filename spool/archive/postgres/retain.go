package postgres

import (
	"context"
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
			USING (SELECT account_id, min(oldest) AS oldest, max(newest) AS newest
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
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at < $4
			ORDER BY at LIMIT $5)
			UNION ALL
			(SELECT request_id FROM record_states
			WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at < $4
			ORDER BY span_at LIMIT $5)`, account, from, to, nanosOf(cutoff), deleteStep)
		if err != nil || len(ids) == 0 {
			break
		}

		// By id, under the account's lock: an event may just be on its way to one of them.
		n, e := db.deleteRecords(ctx, account, texts(ids), nil, false)
		dropped, err = dropped+n.Records, e
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

func texts(ids []uuid) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return all
}

// dropBeyond deletes an account's oldest records until it holds at most limit bytes.
func (db *DB) dropBeyond(ctx context.Context, account string, limit, dropped int64) (int64, error) {
	for {
		var records, bytes int64
		err := db.pool.QueryRow(ctx, nil, []any{&records, &bytes}, `
			SELECT coalesce(sum(records + spans), 0)::bigint, coalesce(sum(bytes), 0)::bigint
			FROM account_weeks WHERE account_id = $1`, account)
		if err != nil || bytes <= limit || records == 0 {
			return dropped, err
		}

		// As many records as the excess has at the account's mean size: that deletes at most a
		// few too many or too few.
		step := min(max((bytes-limit)*records/bytes, 1), deleteStep)
		ids, err := db.oldest(ctx, account, int(step))
		if err != nil || len(ids) == 0 {
			return dropped, err
		}
		n, err := db.deleteRecords(ctx, account, texts(ids), nil, false)
		if dropped += n.Records; err != nil {
			return dropped, err
		}
	}
}

// oldest returns the ids of an account's n oldest records and spans.
func (db *DB) oldest(ctx context.Context, account string, n int) (ids []uuid, err error) {
	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		ids = nil
		weeks, err := weekSpans(ctx, tx, account)
		if err != nil {
			return err
		}

		pieces := smallestWindows(weeks, nanosLeast, nanosMost)
		// From the old end on, partition by partition, until there are enough.
		for i := len(pieces) - 1; i >= 0 && len(ids) < n; i-- {
			p := pieces[i]
			rows, err := tx.Query(ctx, `
				SELECT request_id FROM (
					(SELECT at, request_id FROM records
					WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at >= $4 AND at <= $5
					ORDER BY at, request_id LIMIT $6)
					UNION ALL
					(SELECT span_at, request_id FROM record_states
					WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at >= $4 AND span_at <= $5
					ORDER BY span_at, request_id LIMIT $6)
				) both_kinds
				ORDER BY at, request_id LIMIT $6`,
				account, p.from, p.to, p.oldest, p.newest, n-len(ids))
			if err != nil {
				return err
			}
			more, err := pgx.CollectRows(rows, pgx.RowTo[uuid])
			if err != nil {
				return err
			}
			ids = append(ids, more...)
		}
		return nil
	})

	return ids, err
}
