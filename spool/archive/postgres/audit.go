package postgres

import (
	"context"

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
