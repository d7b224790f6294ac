package postgres

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/postgres/connection"
	"promptspool/spool/database/postgres/filter"
	"promptspool/spool/database/postgres/schema"
)

// GoneBy returns no time: when the bytes leave the disk is up to the database (VACUUM).
func (db *DB) GoneBy() time.Time { return time.Time{} }

// valuesMax bounds the deleted metadata values of an account.
const valuesMax = 100_000

// Forget stores the tombstones of metadata values; see archive.Store. When it returns, every
// write that did not see the tombstone is committed, and every later one sees it.
func (db *DB) Forget(ctx context.Context, account string, values ...wire.Deletion) error {
	key, err := schema.AccountKey(account)
	if err != nil {
		return err
	}
	before := make(map[[16]byte]int64)
	for _, d := range values {
		hash := rowcode.HashValue(d.Key, d.Value)
		before[hash] = schema.Nanos(d.Before)
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		// The account's lock, exclusively: it waits for all writers that have begun.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, accountLock(key)); err != nil {
			return err
		}

		// Without these, which may be deleted again however many there are.
		var hashes [][]byte
		b := &pgx.Batch{}
		for hash, at := range before {
			hashes = append(hashes, bytes.Clone(hash[:]))
			b.Queue(`
				INSERT INTO deleted_values AS v (account_id, hash, before) VALUES ($1, $2, $3)
				ON CONFLICT (account_id, hash) DO UPDATE SET before = greatest(v.before, excluded.before)`,
				key, bytes.Clone(hash[:]), at)
		}
		others := 0
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM deleted_values WHERE account_id = $1 AND hash <> ALL($2)`,
			key, hashes).Scan(&others); err != nil {
			return err
		}
		if others+len(hashes) > valuesMax {
			return wire.Errorf(wire.CodeTooLarge, "This project has deleted requests by %d metadata values, "+
				"which is the limit. Delete by request_id instead.", valuesMax)
		}

		return sendBatch(ctx, tx, b)
	})
}

// havingStep is how many records Having looks for at a time.
const havingStep = 1000

// Having returns the ids of records that may have a metadata value, by their terms; see
// archive.Store.
func (db *DB) Having(
	ctx context.Context, account string, d wire.Deletion, after string,
) (ids []string, next string, err error) {
	last := place{at: nanosMost}
	if p, ok := query.ParseCursor(after); ok {
		last.at = schema.Nanos(p.At)
		last.id, _ = archive.ParseUUID(p.RequestID)
	}
	key, err := schema.AccountKey(account)
	if err != nil {
		return nil, "", err
	}

	// Over all partitions: the terms' indexes find few rows in each.
	terms := filter.MetadataTerms(key, d.Key, rowcode.StoredValue(d.Key, d.Value))
	page, err := connection.QueryRows(ctx, db.pool, positionRow, `
		SELECT at, request_id FROM records
		WHERE account_id = $1 AND terms && $2::bigint[] AND (at, request_id) < ($3, $4)
		ORDER BY at DESC, request_id DESC LIMIT $5`, key, terms, last.at, last.id, havingStep)
	for _, p := range page {
		ids = append(ids, p.RequestID)
	}
	if len(page) == havingStep {
		next = page[len(page)-1].Cursor()
	}

	return ids, next, err
}
