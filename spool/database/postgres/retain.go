package postgres

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// Accounts returns the ids of all accounts that have records; see archive.Store.
func (db *DB) Accounts(ctx context.Context) ([]string, error) {
	return connection.QueryRows(ctx, db.pool, accountRow,
		`SELECT DISTINCT account_id FROM account_weeks ORDER BY account_id`)
}

// accountRow reads the key of an account as its id.
func accountRow(row pgx.CollectableRow) (account string, err error) {
	err = row.Scan(&account)
	return schema.AccountOf(account), err
}

// DropBefore drops the weeks that are too old; see archive.Store. A week stays if
// something in it arrived late, or is in the default partition.
func (db *DB) DropBefore(ctx context.Context, cutoff time.Time) (dropped int64, rest time.Time, err error) {
	old, err := connection.QueryRows(ctx, db.pool, pgx.RowTo[time.Time], `
		SELECT week FROM account_weeks GROUP BY week
		HAVING coalesce(max(newest) < $1, true) AND sum(orphans) = 0 ORDER BY week`, schema.Nanos(cutoff))
	for _, week := range old {
		_, end := schema.WeekEnds(week)
		if err != nil || end.InfinityModifier != 0 || end.Time.After(cutoff) {
			continue
		}
		var n int64
		n, err = db.dropWeek(ctx, week, cutoff)
		dropped += n
	}

	// Records in the week of the cutoff go with the week.
	return dropped, schema.WeekOf(cutoff), err
}

// dropWeek drops the partitions of a week if nothing in them has to stay. Writers to the week
// wait for it, and then find its records gone.
func (db *DB) dropWeek(ctx context.Context, week, cutoff time.Time) (dropped int64, err error) {
	gone := false
	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		dropped, gone = 0, false
		exists, err := schema.LockWeek(ctx, tx, week)
		if err != nil || !exists {
			return err
		}

		// Only now, after the locks, do the counts include every write to the week.
		stays := false
		if err := tx.QueryRow(ctx, `
			SELECT coalesce(max(newest) >= $2, false) OR sum(orphans) <> 0, coalesce(sum(records + spans), 0)::bigint
			FROM account_weeks WHERE week = $1`, week, schema.Nanos(cutoff)).
			Scan(&stays, &dropped); err != nil || stays {
			dropped = 0
			return err
		}

		// Summaries that touch the week go too: they would still count its rows. So do indexes of words.
		gone = true
		for _, of := range [][2]string{
			{"summaries", "summaries"}, {"text_pages", "text_units"}, {"text_units", "text_units"},
		} {
			if _, err := tx.Exec(ctx, `
				DELETE FROM `+of[0]+` gone
				USING `+of[1]+` s, (SELECT account_id, min(list_oldest) AS oldest, max(list_newest) AS newest
					FROM account_weeks WHERE week = $1 GROUP BY account_id) w
				WHERE gone.account_id = s.account_id AND gone.newest = s.newest
					AND s.account_id = w.account_id AND s.newest >= w.oldest AND s.bottom <= w.newest`,
				week); err != nil {
				return err
			}
		}
		if err := dropRollups(ctx, tx, week); err != nil {
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

	return dropped, err
}

// Oldest returns the ids of the records with the lowest order times; see archive.Store.
func (db *DB) Oldest(
	ctx context.Context, account string, before time.Time, n int,
) (ids []string, err error) {
	end := int64(math.MaxInt64)
	if !before.IsZero() {
		end = schema.Nanos(before)
	}
	type aged struct {
		at int64
		id uuid
	}

	err = db.viewOf(ctx, account, func(tx pgx.Tx, key string) error {
		rows, _ := tx.Query(ctx, `
			SELECT week, min(oldest) FROM account_weeks
			WHERE account_id = $1 GROUP BY week HAVING min(oldest) < $2
			ORDER BY min(oldest)`, key, end)
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
			rows, _ := tx.Query(ctx, `
				(SELECT accepted, request_id FROM records
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND accepted < $5
				ORDER BY 1, 2 LIMIT $4)
				UNION ALL
				(SELECT span_at, request_id FROM record_states
				WHERE account_id = $1 AND ts >= $2 AND ts < $3 AND span_at < $5
				ORDER BY 1, 2 LIMIT $4)`,
				key, from, to, n, end)
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
			ids = append(ids, r.id.String())
		}
		return nil
	})

	return ids, err
}
