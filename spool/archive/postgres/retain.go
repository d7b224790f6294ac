package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Retain deletes what is beyond the retention, without tombstones, and returns how many records went. By age, a week goes when all of
// it is too old, by dropping its partitions: so a record may stay up to a week longer.
func (db *DB) Retain(ctx context.Context, r archive.Retention) (dropped int64, err error) {
	if r.Age > 0 {
		dropped, err = db.dropOlder(ctx, db.now().Add(-r.Age))
	}
	if err != nil || r.Bytes <= 0 {
		return dropped, err
	}
	accounts, err := queryRows(ctx, db, func(a *string) []any { return []any{a} },
		`SELECT account_id FROM account_weeks GROUP BY account_id HAVING sum(bytes) > $1 ORDER BY account_id`, r.Bytes)
	for _, account := range accounts {
		if err == nil {
			dropped, err = db.dropBeyond(ctx, account, r.Bytes, dropped)
		}
	}
	return dropped, err
}

// dropOlder drops the weeks that are too old. Of a week that cannot go whole, because something in it came late or lies in the partition
// without bounds, it deletes what is too old.
func (db *DB) dropOlder(ctx context.Context, cutoff time.Time) (dropped int64, err error) {
	type old struct {
		week    time.Time
		account string
	}
	weeks, err := queryRows(ctx, db, func(o *old) []any { return []any{&o.week, &o.account} },
		`SELECT week, account_id FROM account_weeks GROUP BY week, account_id HAVING min(oldest) < $1 OR sum(orphans) <> 0 ORDER BY week, account_id`, nanosOf(cutoff))
	gone := make(map[time.Time]bool)
	for _, o := range weeks {
		_, end := weekEnds(o.week)
		past := end.InfinityModifier == 0 && !end.Time.After(cutoff)
		if err != nil || !past && db.bounded(o.week) {
			continue
		}
		n := int64(0)
		if _, tried := gone[o.week]; !tried && past {
			if n, gone[o.week], err = db.dropWeek(ctx, o.week, cutoff); err != nil {
				return dropped, err
			}
			dropped += n
		}
		if !gone[o.week] {
			n, err = db.deleteOlder(ctx, o.account, o.week, cutoff)
			dropped += n
		}
	}
	return dropped, err
}

// dropWeek drops the partitions of a week if nothing in them is to stay. Whoever writes to it meanwhile waits, and finds its records gone.
func (db *DB) dropWeek(ctx context.Context, week, cutoff time.Time) (dropped int64, gone bool, err error) {
	err = db.change(ctx, true, func(tx pgx.Tx) error {
		dropped, gone = 0, false
		there := false
		for _, sql := range []string{fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, partitionLock), `SET LOCAL lock_timeout = '3s'`} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		for _, table := range partitioned {
			name := partitionName(table, week)
			if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil || !there {
				return err
			}
			if _, err := tx.Exec(ctx, `LOCK TABLE `+name+` IN ACCESS EXCLUSIVE MODE`); err != nil {
				return err
			}
		}
		stays := false
		if err := tx.QueryRow(ctx, `SELECT coalesce(max(newest) >= $2, false) OR sum(orphans) <> 0, coalesce(sum(records), 0)::bigint FROM account_weeks WHERE week = $1`, week, nanosOf(cutoff)).
			Scan(&stays, &dropped); err != nil || stays {
			dropped = 0
			return err
		}
		gone = true
		if _, err := tx.Exec(ctx, `DELETE FROM summaries s USING (SELECT account_id, min(oldest) AS oldest, max(newest) AS newest FROM account_weeks WHERE week = $1 GROUP BY account_id) w
			WHERE s.account_id = w.account_id AND s.newest >= w.oldest AND s.bottom <= w.newest`, week); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM account_weeks WHERE week = $1`, week); err != nil {
			return err
		}
		for _, table := range partitioned {
			if _, err := tx.Exec(ctx, `DROP TABLE `+partitionName(table, week)); err != nil {
				return err
			}
		}
		return nil
	})
	if gone {
		db.partitions.forget()
	}
	return dropped, gone && err == nil, err
}

// deleteOlder deletes an account's records of a week that are too old, one by one, and the orphans.
func (db *DB) deleteOlder(ctx context.Context, account string, week, cutoff time.Time) (dropped int64, err error) {
	from, to := weekEnds(week)
	for err == nil {
		var ids []uuid
		ids, err = queryRows(ctx, db, func(id *uuid) []any { return []any{id} },
			`SELECT request_id FROM records WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at < $4 ORDER BY at LIMIT $5`, account, from, to, nanosOf(cutoff), deleteStep)
		if err != nil || len(ids) == 0 {
			break
		}
		n, e := db.deleteRecords(ctx, account, texts(ids), nil, false)
		dropped, err = dropped+n.Records, e
	}
	if err == nil {
		var n wire.Deleted
		n, err = db.deleteOrphans(ctx, account, func(s *archive.State) bool { return s.History[len(s.History)-1].At.Before(cutoff) }, false)
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

// dropBeyond deletes an account's oldest records until it holds no more bytes than it may.
func (db *DB) dropBeyond(ctx context.Context, account string, most, dropped int64) (int64, error) {
	for {
		var records, bytes int64
		err := db.queryRow(ctx, nil, []any{&records, &bytes}, `SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM account_weeks WHERE account_id = $1`, account)
		if err != nil || bytes <= most || records == 0 {
			return dropped, err
		}
		// As many as the excess is of the account's mean record: a few at most are dropped too many or too few.
		step := min(max((bytes-most)*records/bytes, 1), deleteStep)
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

// oldest are the ids of an account's oldest records.
func (db *DB) oldest(ctx context.Context, account string, n int) (ids []uuid, err error) {
	err = db.view(ctx, func(tx pgx.Tx) error {
		ids = nil
		weeks, err := weekSpans(ctx, tx, account)
		if err != nil {
			return err
		}
		pieces := smallestWindows(weeks, nanosLeast, nanosMost)
		for i := len(pieces) - 1; i >= 0 && len(ids) < n; i-- {
			p := pieces[i]
			rows, err := tx.Query(ctx, `SELECT request_id FROM records WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND at >= $4 AND at <= $5 ORDER BY at, request_id LIMIT $6`,
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
