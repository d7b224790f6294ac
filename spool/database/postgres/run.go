package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/postgres/connection"
)

const (
	runEvery    = time.Minute
	retainEvery = 10 * time.Minute
)

// Run maintains the database until ctx ends; it then returns nil.
//
// It creates the partitions of the next weeks, enforces the retention and makes summaries.
// Of several servers one does so at a time; when it stops, another takes over.
func (db *DB) Run(ctx context.Context) error {
	tick := time.NewTicker(runEvery)
	defer tick.Stop()

	retained := time.Time{}
	maintain := func() error {
		// First, since without the next week nothing could be written.
		err := db.tables.MakeAhead(ctx)

		if time.Since(retained) >= retainEvery {
			retained = time.Now()
			dropped, e := archive.Retain(ctx, db, db.retention, db.now())
			if err = errors.Join(err, e); dropped > 0 {
				db.logger.Info("Deleted records beyond the retention", "records", dropped)
			}
			now := db.now()
			err = errors.Join(err,
				db.TrimAudit(ctx, now.Add(-wire.AuditAge), now.Add(-wire.AuditFresh), wire.AuditMost))
		}

		return errors.Join(err, db.Summarize(ctx))
	}

	for {
		// One server of a database does this at a time; the others try again later.
		err := db.withLock(ctx, connection.RunLock, maintain)
		if err != nil && ctx.Err() == nil {
			db.logger.Error("Database maintenance failed; it will be retried", "error", err)
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// withLock runs fn while holding an advisory lock, unless somebody else holds it.
func (db *DB) withLock(ctx context.Context, lock int64, fn func() error) error {
	var failed error
	err := db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		// Not waited for: whoever holds it does the same work.
		locked := false
		err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lock).Scan(&locked)
		if err != nil || !locked {
			return err
		}

		// fn uses transactions of its own; this one only holds the lock. Its error must not be
		// returned here, or this transaction would be retried and fn run again.
		failed = fn()
		return nil
	})

	return errors.Join(err, failed)
}
