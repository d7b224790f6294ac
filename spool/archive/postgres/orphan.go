package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/schema"
)

// Orphans lists records whose request has not arrived; see archive.Store.
func (db *DB) Orphans(
	ctx context.Context, account, after string, limit int,
) (rows []wire.Orphan, more bool, tally archive.Orphans, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, false, tally, err
	}
	var behind uuid
	if after != "" {
		ok := false
		if behind, ok = parseUUID(after); !ok {
			return nil, false, tally, badID(after)
		}
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		rows, more, tally = nil, false, archive.Orphans{}
		held := 0

		// Ids begin with their time, so orphans week by week come in the order of ids.
		weeks, err := orphanWeeks(ctx, tx, key, &tally)
		for _, week := range weeks {
			if err != nil || more || limit == 0 {
				break
			}
			if from := schema.WeekOf(tsOf(behind)); after != "" && week.Before(from) {
				continue
			}

			err = db.orphansOf(ctx, tx, key, week, behind, limit-len(rows)+1, func(s *archive.State) bool {
				// A page may end early, before its states fill the memory.
				if more = len(rows) == limit || held > db.heldBytesMax; more {
					return false
				}
				held += s.Weight()
				if row, ok := s.OrphanRow(); ok {
					rows = append(rows, row)
				}
				return true
			})
		}
		return err
	})

	return rows, more, tally, err
}

// orphanWeeks returns the weeks in which an account has orphans, and adds all of them to
// tally.
func orphanWeeks(
	ctx context.Context, tx pgx.Tx, account string, tally *archive.Orphans,
) (weeks []time.Time, err error) {
	// From the counts, a few rows for each week: no partition without orphans is touched.
	rows, err := tx.Query(ctx, `
		SELECT week, sum(orphans)::bigint, sum(orphan_events)::bigint, sum(orphan_bytes)::bigint,
			sum(logs)::bigint
		FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING sum(orphans) <> 0 OR sum(logs) <> 0 ORDER BY week`, account)
	if err != nil {
		return nil, err
	}

	var week time.Time
	var o archive.Orphans
	_, err = pgx.ForEachRow(rows, []any{&week, &o.Requests, &o.Events, &o.Bytes, &o.Logs}, func() error {
		if o.Requests != 0 {
			weeks = append(weeks, week)
		}
		tally.Add(o)
		return nil
	})

	return weeks, err
}

// Bounds of what is in memory while orphans are read. Their states are unpacked one by one.
const (
	orphansStep  = 1000    // orphans whose sizes are read at a time
	orphansBytes = 4 << 20 // packed bytes that are read at a time; one orphan may have more
)

// orphansOf calls fn with up to limit orphans of a week behind an id, in the order of their
// ids, until fn wants no more.
func (db *DB) orphansOf(
	ctx context.Context, tx pgx.Tx, account string, week time.Time, behind uuid, limit int,
	fn func(*archive.State) (more bool),
) error {
	from, to := schema.WeekEnds(week)

	// Sizes first, from the partial index on orphans and the row's head; no state is read.
	for limit > 0 {
		step := min(limit, orphansStep)
		// Behind the last id, so that deleting them meanwhile skips none.
		rows, err := tx.Query(ctx, `
			SELECT request_id, octet_length(state) FROM record_states
			WHERE account_id = $1 AND orphan AND span_at IS NULL AND ts >= $2 AND ts < $3 AND request_id > $4
			ORDER BY request_id LIMIT $5`, account, from, to, behind, step)
		if err != nil {
			return err
		}

		// Divide them into groups that fit in memory.
		var group []uuid
		var groups [][]uuid
		var id uuid
		bytes, size, n := 0, 0, 0
		if _, err := pgx.ForEachRow(rows, []any{&id, &size}, func() error {
			if bytes += size; bytes > orphansBytes && len(group) > 0 {
				groups, group, bytes = append(groups, group), nil, size
			}
			group = append(group, id)
			n++
			return nil
		}); err != nil {
			return err
		}

		for _, ids := range append(groups, group) {
			more, err := db.readOrphans(ctx, tx, account, week, ids, fn)
			if err != nil || !more {
				return err
			}
		}
		if n < step {
			break
		}
		behind, limit = id, limit-n
	}

	return nil
}

// readOrphans calls fn with these orphans of a week, until fn wants no more.
func (db *DB) readOrphans(
	ctx context.Context, tx pgx.Tx, account string, week time.Time, ids []uuid, fn func(*archive.State) (more bool),
) (more bool, err error) {
	type orphan struct {
		id     uuid
		packed []byte
	}
	from, to := schema.WeekEnds(week)
	rows, err := tx.Query(ctx, `
		SELECT request_id, state FROM record_states
		WHERE account_id = $1 AND request_id = ANY($2) AND ts >= $3 AND ts < $4
		ORDER BY request_id`, account, ids, from, to)
	if err != nil {
		return false, err
	}
	orphans, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o orphan, err error) {
		err = row.Scan(&o.id, &o.packed)
		return o, err
	})

	// One at a time: unpacked, a state may be many times as large.
	for _, o := range orphans {
		if err != nil {
			break
		}
		var state archive.Stored
		if state, err = db.codec.unpackState(o.packed, o.id); err == nil {
			err = db.codec.joinDeltas(ctx, tx, account, o.id, &state)
		}
		if err == nil && !fn(&state.State) {
			return false, nil
		}
	}

	return true, err
}

// OrphansOfAll returns the orphans of all accounts together.
func (db *DB) OrphansOfAll(ctx context.Context) (all archive.Orphans, err error) {
	err = db.pool.QueryRow(ctx, nil, []any{&all.Requests, &all.Events, &all.Bytes}, `
		SELECT coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint
		FROM account_weeks`)

	return all, err
}
