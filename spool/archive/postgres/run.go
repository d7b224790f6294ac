package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Between looks at what is to be made, dropped and summarized.
const (
	runEvery    = time.Minute
	retainEvery = 10 * time.Minute
)

// Run makes the partitions of the weeks to come, drops what is beyond the retention and makes summaries, now and then, until ctx ends. Of
// several servers one does so at a time; when it goes, another takes over. It returns nil.
func (db *DB) Run(ctx context.Context) error {
	tick := time.NewTicker(runEvery)
	defer tick.Stop()
	retained := time.Time{}
	for {
		err := db.withLock(ctx, runLock, func() error {
			err := db.makeAhead(ctx)
			if time.Since(retained) >= retainEvery {
				retained = time.Now()
				dropped, e := db.Retain(ctx, db.retention)
				if err = errors.Join(err, e); dropped > 0 {
					db.logger.Info("records beyond the retention were deleted", "records", dropped)
				}
			}
			return errors.Join(err, db.Summarize(ctx))
		})
		if err != nil && ctx.Err() == nil {
			db.logger.Error("keeping house in the database failed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// alone runs fn unless somebody else does so already.
func (db *DB) withLock(ctx context.Context, lock int64, fn func() error) error {
	var ended error
	err := db.change(ctx, true, func(tx pgx.Tx) error {
		mine := false
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, lock).Scan(&mine); err != nil || !mine {
			return err
		}
		ended = fn() // in transactions of its own; this one only holds the lock
		return nil
	})
	return errors.Join(err, ended)
}
