package postgres

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/schema"
	"promptspool/spool/database/transfer"
)

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return db.small() }

// Servers returns how many connections servers have to the database. Those of a copy do not
// count: they have another application_name.
func (db *DB) Servers(ctx context.Context) (connections int, err error) {
	err = db.pool.QueryRow(ctx, []any{&connections}, `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = $1`, connection.ApplicationName)
	return connections, err
}

// IDs returns ids of records; see archive.Store.
func (db *DB) IDs(ctx context.Context, account, after string, limit int) (ids []string, err error) {
	key, err := schema.AccountKey(account)
	if err != nil {
		return nil, err
	}
	before := uuid(bytes.Repeat([]byte{0xff}, len(uuid{})))
	if after != "" {
		var ok bool
		if before, ok = archive.ParseUUID(after); !ok {
			return nil, archive.BadID(after)
		}
	}

	// By the primary key across all partitions, from after the last record on.
	return connection.QueryRows(ctx, db.pool, pgx.RowTo[string], `
		SELECT request_id::text FROM record_states s
		WHERE account_id = $1 AND request_id < $2 ORDER BY s.request_id DESC LIMIT $3`, key, before, limit)
}

// Known returns the ids of all accounts; see transfer.Mover.
func (db *DB) Known(ctx context.Context) ([]string, error) {
	return connection.QueryRows(ctx, db.pool, accountRow, `
		SELECT account_id FROM account_weeks
		UNION SELECT account_id FROM tombstones UNION SELECT account_id FROM deleted_values`)
}

// Tombstones returns tombstones, those of records first; see transfer.Mover.
func (db *DB) Tombstones(
	ctx context.Context, account string, after transfer.Tombstone, limit int,
) (page []transfer.Tombstone, err error) {
	key, err := schema.AccountKey(account)
	if err != nil {
		return nil, err
	}

	if !after.OfValue {
		page, err = connection.QueryRows(ctx, db.pool,
			func(row pgx.CollectableRow) (t transfer.Tombstone, err error) {
				err = row.Scan((*uuid)(&t.Key), &t.At, &t.Unseen)
				return t, err
			}, `
			SELECT request_id, deleted_at, unseen FROM tombstones
			WHERE account_id = $1 AND request_id > $2 ORDER BY request_id LIMIT $3`, key, uuid(after.Key), limit)
		if err != nil || len(page) > 0 {
			return page, err
		}
		after.Key = [16]byte{}
	}

	return connection.QueryRows(ctx, db.pool,
		func(row pgx.CollectableRow) (t transfer.Tombstone, err error) {
			var hash []byte
			var before int64
			err = row.Scan(&hash, &before)
			copy(t.Key[:], hash)
			t.OfValue, t.At = true, time.Unix(0, before).UTC()
			return t, err
		}, `
		SELECT hash, before FROM deleted_values
		WHERE account_id = $1 AND hash > $2 ORDER BY hash LIMIT $3`, key, after.Key[:], limit)
}

// Bury stores tombstones, except those that are here; see transfer.Mover.
func (db *DB) Bury(ctx context.Context, account string, tombstones []transfer.Tombstone) error {
	key, err := schema.AccountKey(account)
	if err != nil {
		return err
	}
	var ofRecords, ofValues [][]any
	for _, t := range tombstones {
		if t.OfValue {
			ofValues = append(ofValues, []any{key, bytes.Clone(t.Key[:]), schema.Nanos(t.At)})
		} else {
			ofRecords = append(ofRecords, []any{key, uuid(t.Key), t.At.UTC(), t.Unseen})
		}
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		queueTombstones(b, ofRecords)
		queueInserts(b, "deleted_values", []string{"account_id", "hash", "before"}, ofValues, " ON CONFLICT DO NOTHING")
		return sendBatch(ctx, tx, b)
	})
}
