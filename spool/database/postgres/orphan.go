package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/schema"
)

// OffList returns records that no list shows; see archive.Store.
func (db *DB) OffList(
	ctx context.Context, account string, which archive.OffList, after string, limit int,
) (states []archive.State, next string, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, "", err
	}
	var behind uuid
	if after != "" {
		var ok bool
		if behind, ok = parseUUID(after); !ok {
			return nil, "", archive.BadID(after)
		}
	}

	// In steps, so that packed states do not all lie in memory together.
	limit = min(limit, statesStep)
	err = db.pool.View(ctx, func(tx pgx.Tx) (err error) {
		states, next = nil, "" // View may call this again, after a lost connection
		from := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}
		to := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}
		if which == archive.Orphaned {
			var weeks []time.Time
			if weeks, err = orphanWeeks(ctx, tx, key); err != nil || len(weeks) == 0 {
				return err
			}
			from, _ = schema.WeekEnds(weeks[0])
			_, to = schema.WeekEnds(weeks[len(weeks)-1])
		}

		var all bool
		states, all, err = db.states(ctx, tx, key, `
			SELECT request_id, state FROM record_states
			WHERE account_id = $1 AND orphan AND (span_at IS NOT NULL) = $2 AND request_id > $3
				AND ts >= $4 AND ts < $5
			ORDER BY request_id LIMIT $6`, key, which == archive.TaggedSpans, behind, from, to, limit)
		if err == nil && (!all || len(states) == limit) {
			next = states[len(states)-1].RequestID
		}
		return err
	})

	return states, next, err
}

// orphanWeeks returns the weeks in which an account has orphans. They are in the counts, so that no
// other partition is touched.
func orphanWeeks(ctx context.Context, tx pgx.Tx, account string) ([]time.Time, error) {
	rows, err := tx.Query(ctx, `
		SELECT week FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING sum(orphans) <> 0 ORDER BY week`, account)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}

// Counts returns what an account has; see archive.Store.
func (db *DB) Counts(ctx context.Context, account string) (c archive.Counts, err error) {
	key, err := accountKey(account)
	if err != nil {
		return c, err
	}

	o := &c.Orphans
	err = db.pool.QueryRow(ctx, []any{&c.Records, &c.Spans, &c.Bytes, &o.Requests, &o.Events, &o.Bytes, &o.Logs}, `
		SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(spans), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint, coalesce(sum(logs), 0)::bigint
		FROM account_weeks WHERE account_id = $1`, key)

	return c, err
}

// OrphansOfAll returns the orphans of all accounts together.
func (db *DB) OrphansOfAll(ctx context.Context) (all archive.Orphans, err error) {
	err = db.pool.QueryRow(ctx, []any{&all.Requests, &all.Events, &all.Bytes}, `
		SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint
		FROM account_weeks`)

	return all, err
}
