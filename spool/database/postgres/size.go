package postgres

import (
	"context"

	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/schema"
)

// Size returns what all accounts hold, and the size of the database on disk.
//
// The latter is that of all nodes, and includes the tables of others.
func (db *DB) Size(ctx context.Context) (s archive.Size, err error) {
	var records, bytes int64
	o := &s.Orphans
	err = db.pool.QueryRow(ctx, []any{&records, &bytes, &o.Requests, &o.Events, &o.Bytes, &s.DiskBytes},
		`SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			coalesce(sum(orphans), 0)::bigint, coalesce(sum(orphan_events), 0)::bigint,
			coalesce(sum(orphan_bytes), 0)::bigint, pg_database_size(current_database())
		FROM account_weeks`)
	// Counted row by row: no total is kept of them.
	if err == nil {
		err = db.pool.QueryRow(ctx, []any{&s.Tombstones},
			`SELECT (SELECT count(*) FROM tombstones) + (SELECT count(*) FROM deleted_values)`)
	}
	if err == nil && db.spread {
		var workers int64
		workers, err = db.diskOfWorkers(ctx)
		s.DiskBytes += workers
	}
	s.Records, s.Bytes = uint64(records), uint64(bytes)
	return s, err
}

// Counts returns what an account has; see archive.Store.
func (db *DB) Counts(ctx context.Context, account string) (c archive.Counts, err error) {
	key, err := schema.AccountKey(account)
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
