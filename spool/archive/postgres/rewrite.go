package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Rewrite changes what is derived from requests; see archive.Store.
func (db *DB) Rewrite(
	ctx context.Context, account string, after *query.Position, limit int, change archive.Change,
) (end *query.Position, changed int, err error) {
	key, err := accountKey(account)
	if err != nil {
		return nil, 0, err
	}

	return archive.RewritePage(ctx, db, account, after, limit, func(page []query.Position) (int, error) {
		return db.rewrite(ctx, key, page, change)
	})
}

// rewrite is Rewrite of some records, in one transaction.
func (db *DB) rewrite(
	ctx context.Context, key string, page []query.Position, change archive.Change,
) (changed int, err error) {
	// Outside the transaction: it may run again, and load then forgets what it has read.
	f := db.newFolding(0)
	for _, p := range page {
		if _, err := f.addRecord(key, p.RequestID); err != nil {
			return 0, err
		}
	}

	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		changed = 0 // after a conflict this runs again
		if err := f.load(ctx, tx, false); err != nil {
			return err
		}
		for _, p := range page {
			id, _ := parseUUID(p.RequestID)
			r := f.records[recordKey{key, id}]
			if !r.state.Listed() {
				continue // deleted since the page was read
			}

			// Read only if change asks for it: most changes need the state alone.
			row, _ := r.state.Row()
			before := rowcode.Encode(&row)
			body := func() ([]byte, error) { return db.requestBody(ctx, tx, r) }
			if r.changed, err = change(r.state.Request.At, &r.state.Request.Value, body); err != nil {
				return err
			}

			// Excerpts are not in the header, which then stays, and with it its summary.
			row, _ = r.state.Row()
			r.sameRow = bytes.Equal(before, rowcode.Encode(&row))
			if r.changed {
				changed++
			}
		}

		return f.write(ctx, tx)
	})
	if err != nil {
		return 0, err
	}

	return changed, nil
}

// requestBody reads the body of a record's request.
func (db *DB) requestBody(ctx context.Context, tx pgx.Tx, r *record) ([]byte, error) {
	// The history has the hash that the body is checked against.
	for _, h := range r.state.History {
		if h.ID != r.state.Request.ID {
			continue
		}

		// By the whole primary key, and ts keeps it to one partition.
		event, _ := parseUUID(h.ID)
		var packed []byte
		err := tx.QueryRow(ctx, `
			SELECT body FROM record_bodies
			WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND event_id = $4`,
			r.account, r.id, r.ts, event).Scan(&packed)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, damaged("the body of event "+h.ID, err)
		}
		if err != nil {
			return nil, err
		}
		return db.codec.unpackBody(packed, h)
	}
	return nil, nil
}

// Edit changes whole records; see archive.Store.
func (db *DB) Edit(ctx context.Context, account string, ids []string, change archive.Edit) (changed int, err error) {
	key, err := accountKey(account)
	if err != nil {
		return 0, err
	}

	err = archive.Apart(ids, func(part []string) error {
		n, err := db.editTogether(ctx, key, part, change)
		changed += n
		return err
	})
	return changed, err
}

// editTogether is Edit in one transaction.
func (db *DB) editTogether(
	ctx context.Context, key string, ids []string, change archive.Edit,
) (changed int, err error) {
	f := db.newFolding(0)
	for _, id := range ids {
		if _, err := f.addRecord(key, id); err != nil {
			return 0, err
		}
	}

	err = db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		changed = 0
		if err := f.load(ctx, tx, false); err != nil {
			return err
		}
		for _, r := range f.order {
			if len(r.state.History) == 0 {
				continue // deleted since
			}
			if err := db.edit(ctx, tx, r, change); err != nil {
				return err
			}
			if r.changed {
				changed++
			}
		}
		return f.write(ctx, tx)
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

// edit lets change work on a record, and replaces the bodies that it changed.
func (db *DB) edit(ctx context.Context, tx pgx.Tx, r *record, change archive.Edit) error {
	rows, err := tx.Query(ctx,
		`SELECT event_id, body FROM record_bodies WHERE account_id = $1 AND request_id = $2 AND ts = $3`,
		r.account, r.id, r.ts)
	if err != nil {
		return err
	}
	packed, err := packedBodies(rows)
	if err != nil {
		return err
	}
	// All of them: an edit may concern an event that no longer shows.
	bodies, err := db.codec.unpackBodies(&r.state.State, packed, false)
	if err != nil {
		return err
	}

	r.changed, err = r.state.Edited(bodies, change, func(eventID string, body json.RawMessage) error {
		// Not queued with the rest: write adds bodies by COPY, and this one exists.
		event, _ := parseUUID(eventID)
		_, err := tx.Exec(ctx, `
			UPDATE record_bodies SET body = $5
			WHERE account_id = $1 AND request_id = $2 AND ts = $3 AND event_id = $4`,
			r.account, r.id, r.ts, event, pack(db.codec.bodies, body))
		return err
	})
	return err
}
