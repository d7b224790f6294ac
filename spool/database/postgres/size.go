package postgres

import (
	"context"

	"promptspool/spool/archive"
)

// Size returns what all accounts hold, and the size of the database on disk.
//
// The latter is that of all nodes, and includes the tables of others.
func (db *DB) Size(ctx context.Context) (s archive.Size, err error) {
	var records, bytes int64
	err = db.pool.QueryRow(ctx, []any{&records, &bytes, &s.DiskBytes},
		`SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
			pg_database_size(current_database())
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
