package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
)

// trace is the column with the trace of the record's span.
func (r *record) trace() *uuid {
	if trace, ok := r.state.Trace(); ok {
		id := uuid(trace)
		return &id
	}
	return nil
}

// link is the column with the record's link.
func (r *record) link() *uuid {
	if link, ok := r.state.Link(); ok {
		id := uuid(link)
		return &id
	}
	return nil
}

// spanAt is the column with the order time of a record that is only a span.
func (r *record) spanAt() *int64 {
	if !r.state.Bare() {
		return nil
	}
	at := nanosOf(r.state.BareAt()) // an integer, since the database's times lack nanoseconds

	return &at
}

// unlisted is the column of what a deletion by metadata must look at, although no list shows
// it: orphans, and spans with metadata.
func (r *record) unlisted() bool { return r.state.Orphan() || r.state.Tagged() }

// equal reports whether a column has the value that it should.
func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Spans returns places of spans; see archive.Store.
func (db *DB) Spans(
	ctx context.Context, account string, after *query.Position, limit int,
) (places []query.Position, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, err
	}
	// Without a place to go on from: behind everything, as the newest come first.
	behind := place{at: nanosMost}
	if after != nil {
		behind.at = nanosOf(after.At)
		var ok bool
		if behind.id, ok = parseUUID(after.RequestID); !ok {
			return nil, badID(after.RequestID)
		}
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		places = nil // View may call this again, after a lost connection
		rows, err := tx.Query(ctx, `
			SELECT span_at, request_id FROM record_states
			WHERE account_id = $1 AND span_at IS NOT NULL AND (span_at, request_id) < ($2, $3)
			ORDER BY span_at DESC, request_id DESC LIMIT $4`, key, behind.at, behind.id, limit)
		if err != nil {
			return err
		}

		var p place
		_, err = pgx.ForEachRow(rows, []any{&p.at, &p.id}, func() error {
			places = append(places, query.Position{At: time.Unix(0, p.at).UTC(), RequestID: p.id.String()})
			return nil
		})
		return err
	})

	return places, err
}

// deleteSpans deletes those spans with metadata that match.
func (db *DB) deleteSpans(
	ctx context.Context, key string, match func(*archive.State) bool,
) (sum wire.Deleted, err error) {
	for behind := (uuid{}); ; {
		var ids []string
		var last uuid
		err := db.pool.View(ctx, func(tx pgx.Tx) error {
			ids = nil // View may call this again, after a lost connection
			page, err := db.spanStates(ctx, tx, key, `
				SELECT request_id, state FROM record_states
				WHERE account_id = $1 AND orphan AND span_at IS NOT NULL AND request_id > $2
				ORDER BY request_id LIMIT $3`, key, behind, spansStep)

			// Here already: few spans have the value, and to delete locks the account.
			last = uuid{}
			for i := range page {
				last = page[i].id
				if state := &page[i].state.State; len(state.History) > 0 && match(state) {
					ids = append(ids, last.String())
				}
			}
			return err
		})
		if err != nil || last == (uuid{}) {
			return sum, err
		}
		behind = last

		// Outside the read; see deleteOrphans.
		part, err := db.deleteRecords(ctx, key, ids, match, true)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
		if err != nil {
			return sum, err
		}
	}
}

// Trace returns the records that have a span of a trace; see archive.Store.
func (db *DB) Trace(
	ctx context.Context, account string, trace archive.UUID, after string, limit int,
) (states []archive.State, more bool, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, false, err
	}

	var from uuid
	if after != "" {
		var ok bool
		if from, ok = parseUUID(after); !ok {
			return nil, false, badID(after)
		}
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		states, more = nil, false // as in Spans
		held, behind := 0, from

		// In steps, so that packed states do not all lie in memory together.
		for {
			page, err := db.traceStep(ctx, tx, key, uuid(trace), behind)
			if err != nil || len(page) == 0 {
				return err
			}

			for i := range page {
				if more = len(states) == limit || held > db.heldBytesMax; more {
					return nil
				}
				held += page[i].state.Weight()
				states, behind = append(states, page[i].state.State), page[i].id
			}
		}
	})

	return states, more, err
}

// SpanRecords returns the ids of records of spans; see archive.Store.
func (db *DB) SpanRecords(
	ctx context.Context, account string, traces []archive.UUID, ends []archive.IDEnd, limit int,
) (ids []archive.UUID, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, err
	}
	of, wanted := make([]uuid, len(traces)), make([][]byte, len(ends))
	for i, trace := range traces {
		of[i] = uuid(trace)
	}
	for i := range ends {
		wanted[i] = ends[i][:]
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		ids = nil // as in Spans
		rows, err := tx.Query(ctx, `
			SELECT r.request_id
			FROM unnest($2::uuid[]) AS wanted (trace)
			CROSS JOIN LATERAL (
				SELECT s.request_id FROM record_states s
				WHERE s.account_id = $1 AND s.trace = wanted.trace
				ORDER BY s.request_id LIMIT $4) AS r
			WHERE substr(uuid_send(r.request_id), 7) = ANY($3)
			ORDER BY r.request_id`, key, of, wanted, limit)
		if err != nil {
			return err
		}

		var id uuid
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
			ids = append(ids, archive.UUID(id))
			return nil
		})
		return err
	})

	return ids, err
}

// Linked returns the ids of records by their link; see archive.Store.
func (db *DB) Linked(
	ctx context.Context, account string, links []archive.UUID,
) (ids map[archive.UUID]archive.UUID, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, err
	}
	wanted := make([]uuid, len(links))
	for i, link := range links {
		wanted[i] = uuid(link)
	}

	err = db.pool.View(ctx, func(tx pgx.Tx) error {
		ids = make(map[archive.UUID]archive.UUID) // as in Spans
		rows, err := tx.Query(ctx, `
			SELECT wanted.link, r.request_id
			FROM unnest($2::uuid[]) AS wanted (link)
			CROSS JOIN LATERAL (
				SELECT s.request_id FROM record_states s
				WHERE s.account_id = $1 AND s.link = wanted.link
				ORDER BY s.request_id LIMIT 1) AS r`, key, wanted)
		if err != nil {
			return err
		}

		var link, id uuid
		_, err = pgx.ForEachRow(rows, []any{&link, &id}, func() error {
			ids[archive.UUID(link)] = archive.UUID(id)
			return nil
		})
		return err
	})

	return ids, err
}

// spansStep is how many spans' states are read at a time.
const spansStep = 100

// traceStep reads the next records of a trace behind an id.
func (db *DB) traceStep(
	ctx context.Context, tx pgx.Tx, account string, trace, behind uuid,
) (page []record, err error) {
	return db.spanStates(ctx, tx, account, `
		SELECT request_id, state FROM record_states
		WHERE account_id = $1 AND trace = $2 AND request_id > $3
		ORDER BY request_id LIMIT $4`, account, trace, behind, spansStep)
}

// spanStates reads the ids and states that a statement selects.
func (db *DB) spanStates(
	ctx context.Context, tx pgx.Tx, account, statement string, args ...any,
) (page []record, err error) {
	rows, err := tx.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}

	page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r record, err error) {
		var packed []byte
		if err = row.Scan(&r.id, &packed); err == nil {
			r.state, err = db.codec.unpackState(packed, r.id)
		}
		return r, err
	})
	// After the rows are read: a connection answers one query at a time.
	for i := range page {
		if err == nil {
			err = db.codec.joinDeltas(ctx, tx, account, page[i].id, &page[i].state)
		}
	}

	return page, err
}
