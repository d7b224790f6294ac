package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
)

// equal reports whether a column has the value that it should.
func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Spans returns places of spans; see archive.Store.
func (db *DB) Spans(
	ctx context.Context, account string, after *query.Position, limit int,
) (places []query.Position, err error) {
	// Without a place to continue from: after everything, as the newest come first.
	behind := place{at: nanosMost}
	if after != nil {
		behind.at = schema.Nanos(after.At)
		var ok bool
		if behind.id, ok = archive.ParseUUID(after.RequestID); !ok {
			return nil, archive.BadID(after.RequestID)
		}
	}

	key, err := schema.AccountKey(account)
	if err != nil {
		return nil, err
	}

	return connection.QueryRows(ctx, db.pool, positionRow, `
		SELECT span_at, request_id FROM record_states
		WHERE account_id = $1 AND span_at IS NOT NULL AND (span_at, request_id) < ($2, $3)
		ORDER BY span_at DESC, request_id DESC LIMIT $4`, key, behind.at, behind.id, limit)
}

// positionRow reads the place of a row in the list.
func positionRow(row pgx.CollectableRow) (query.Position, error) {
	var p place
	err := row.Scan(&p.at, &p.id)
	return query.Position{At: time.Unix(0, p.at).UTC(), RequestID: p.id.String()}, err
}

// statesStep is how many packed states are read at a time.
const statesStep = 100

// states reads the states that a statement selects with their ids, in its order, until they weigh
// too much. all reports whether those are all.
func (db *DB) states(
	ctx context.Context, tx pgx.Tx, account, statement string, args ...any,
) (states []archive.State, all bool, err error) {
	type packedState struct {
		id     uuid
		packed []byte
	}
	rows, _ := tx.Query(ctx, statement, args...)
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s packedState, err error) {
		err = row.Scan(&s.id, &s.packed)
		return s, err
	})

	// One at a time, after the rows are read: a connection answers one query at a time, and
	// unpacked a state may be many times as large.
	held := 0
	for _, s := range page {
		if err != nil || held > db.heldBytesMax {
			return states, false, err
		}
		var state archive.Stored
		if state, err = db.codec.unpackState(s.packed, s.id); err == nil {
			err = db.codec.joinDeltas(ctx, tx, account, s.id, &state)
		}
		held += state.Weight()
		states = append(states, state.State)
	}

	return states, true, err
}

// States returns records of a part; see archive.Store.
func (db *DB) States(
	ctx context.Context, account string, of archive.Part, after string, limit int,
) (states []archive.State, next string, err error) {
	var behind uuid
	if after != "" {
		var ok bool
		if behind, ok = archive.ParseUUID(after); !ok {
			return nil, "", archive.BadID(after)
		}
	}

	// In steps, so that packed states are not all in memory together.
	limit = min(limit, statesStep)
	err = db.viewOf(ctx, account, func(tx pgx.Tx, key string) (err error) {
		states, next = nil, "" // viewOf may call this again, after a lost connection
		where, args := `orphan AND span_at IS NOT NULL`, []any{key, behind, limit}
		switch {
		case of.Trace != (uuid{}):
			where, args = `trace = $4`, append(args, of.Trace)
		case !of.Tagged:
			var weeks []time.Time
			if weeks, err = orphanWeeks(ctx, tx, key); err != nil || len(weeks) == 0 {
				return err
			}
			from, _ := schema.WeekEnds(weeks[0])
			_, to := schema.WeekEnds(weeks[len(weeks)-1])
			where, args = `orphan AND span_at IS NULL AND ts >= $4 AND ts < $5`, append(args, from, to)
		}

		var all bool
		states, all, err = db.states(ctx, tx, key, `
			SELECT request_id, state FROM record_states
			WHERE account_id = $1 AND request_id > $2 AND `+where+`
			ORDER BY request_id LIMIT $3`, args...)
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
	rows, _ := tx.Query(ctx, `
		SELECT week FROM account_weeks WHERE account_id = $1
		GROUP BY week HAVING sum(orphans) <> 0 ORDER BY week`, account)
	return pgx.CollectRows(rows, pgx.RowTo[time.Time])
}
