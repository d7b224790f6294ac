package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Orphans lists records whose request has not come; see archive.Store.
func (db *DB) Orphans(ctx context.Context, account, after string, limit int) (rows []wire.Orphan, tally archive.Orphans, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, tally, err
	}
	var behind uuid
	if after != "" {
		ok := false
		if behind, ok = parseUUID(after); !ok {
			return nil, tally, badID(after)
		}
	}
	err = db.view(ctx, func(tx pgx.Tx) error {
		rows, tally = nil, archive.Orphans{}
		weeks, err := orphanWeeks(ctx, tx, key, &tally)
		for _, week := range weeks { // ids go by time, so these are in their order
			if err != nil || len(rows) >= limit {
				break
			}
			if from := weekOf(tsOf(behind)); after != "" && week.Before(from) {
				continue
			}
			err = db.orphansOf(ctx, tx, key, week, behind, limit-len(rows), func(s *archive.State) {
				if row, ok := s.OrphanRow(); ok {
					rows = append(rows, row)
				}
			})
		}
		return err
	})
	return rows, tally, err
}

// orphanWeeks are the weeks in which an account has orphans, and the tally of all.
func orphanWeeks(ctx context.Context, tx pgx.Tx, account string, tally *archive.Orphans) (weeks []time.Time, err error) {
	rows, err := tx.Query(ctx, `SELECT week, sum(orphans)::bigint, sum(orphan_events)::bigint, sum(orphan_bytes)::bigint FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING sum(orphans) <> 0 ORDER BY week`, account)
	if err != nil {
		return nil, err
	}
	var week time.Time
	var o archive.Orphans
	_, err = pgx.ForEachRow(rows, []any{&week, &o.Requests, &o.Events, &o.Bytes}, func() error {
		weeks = append(weeks, week)
		tally.Add(o)
		return nil
	})
	return weeks, err
}

// orphansOf gives fn the orphans of a week behind an id, by their ids.
func (db *DB) orphansOf(ctx context.Context, tx pgx.Tx, account string, week time.Time, behind uuid, limit int, fn func(*archive.State)) error {
	from, to := weekEnds(week)
	rows, err := tx.Query(ctx, `SELECT request_id, state FROM record_states WHERE account_id = $1 AND orphan AND ts >= $2 AND ts < $3 AND request_id > $4 ORDER BY request_id LIMIT $5`,
		account, from, to, behind, limit)
	if err != nil {
		return err
	}
	var id uuid
	var packed []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &packed}, func() error {
		state, err := db.codec.unpackState(packed, id)
		if err == nil {
			fn(&state)
		}
		return err
	})
	return err
}

// OrphansOfAll adds up the tallies of all accounts.
func (db *DB) OrphansOfAll(ctx context.Context) (all archive.Orphans, err error) {
	err = db.one(ctx, nil, []any{&all.Requests, &all.Events, &all.Bytes},
		`SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint, coalesce(sum(orphan_bytes), 0)::bigint FROM account_weeks`)
	return all, err
}
