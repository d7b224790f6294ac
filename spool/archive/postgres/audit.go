package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive/postgres/connection"
)

const insertAudit = `
	INSERT INTO audit (account_id, id, entry) VALUES ($1, $2::uuid, $3::json)
	ON CONFLICT DO NOTHING`

// Audit stores what somebody changed; see auth.AuditStore.
func (db *DB) Audit(ctx context.Context, account string, e wire.AuditEntry) error {
	entry, err := encode(e)
	if err != nil {
		return err
	}
	// The id is new, so a conflict means that a lost answer is being tried again.
	return db.pool.Exec(ctx, insertAudit, account, e.ID, entry)
}

// AuditLog lists what people changed; see auth.AuditStore.
func (db *DB) AuditLog(ctx context.Context, account, before string, limit int) ([]wire.AuditEntry, error) {
	if before == "" {
		before = "ffffffff-ffff-ffff-ffff-ffffffffffff" // above all that there can be
	} else if _, err := wire.ParseID(before); err != nil {
		return nil, wire.Invalid(wire.FieldError{Field: "before", Reason: "must be the id of an entry"})
	}
	return connection.QueryRows(ctx, db.pool, func(e *wire.AuditEntry) []any { return []any{e} },
		`SELECT entry FROM audit WHERE account_id = $1 AND id < $2::uuid ORDER BY id DESC LIMIT $3`,
		account, before, limit)
}

// TrimAudit deletes old entries; see auth.AuditStore.
func (db *DB) TrimAudit(ctx context.Context, oldest, fresh time.Time, most int) error {
	accounts, err := connection.QueryRows(ctx, db.pool, func(a *string) []any { return []any{a} },
		`SELECT DISTINCT account_id FROM audit`)
	for _, account := range accounts {
		if err == nil {
			err = db.trimAudit(ctx, account, wire.NewIDAt(oldest), wire.NewIDAt(fresh), most)
		}
	}

	return err
}

// trimAudit deletes an account's entries from before the id oldest, and those from before the id
// fresh that are beyond the newest most.
func (db *DB) trimAudit(ctx context.Context, account, oldest, fresh string, most int) error {
	kept, err := connection.QueryRows(ctx, db.pool, func(id *string) []any { return []any{id} },
		`SELECT id::text FROM audit WHERE account_id = $1 ORDER BY id DESC OFFSET $2 LIMIT 1`, account, most-1)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		oldest = max(oldest, min(fresh, kept[0]))
	}

	// A few at a time, so that no lock is held for long.
	for n := int64(trimStep); n == trimStep && err == nil; {
		err = db.pool.WithConn(ctx, func(conn *pgx.Conn) error {
			done, err := conn.Exec(ctx, trimAudit, account, oldest, trimStep)
			n = done.RowsAffected()
			return err
		})
	}

	return err
}

// trimStep is how many entries one statement deletes.
const trimStep = 1000

const trimAudit = `
	DELETE FROM audit WHERE account_id = $1 AND id IN (
		SELECT id FROM audit WHERE account_id = $1 AND id < $2::uuid ORDER BY id LIMIT $3)`
