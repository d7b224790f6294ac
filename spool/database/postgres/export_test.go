package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"promptspool/spool/database/postgres/postgrestest"
	"promptspool/spool/database/repack"
)

// Empty returns a database for one test, with its tables but without records.
func Empty(t testing.TB) string {
	t.Helper()
	return postgrestest.Prepared(t, makeTables(t))
}

// Reused is Empty for a test that changes nothing but rows.
func Reused(t testing.TB) string {
	t.Helper()
	return postgrestest.Reused(t, makeTables(t))
}

func makeTables(t testing.TB) func(dsn string) {
	return func(dsn string) {
		db, err := Open(context.Background(), Config{DSN: dsn, Logger: silent})
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	}
}

// InSmallSteps makes all bounds small: summaries of a few rows, made as soon as there are any,
// few bodies and states held at a time, and deltas for states of any size.
func (db *DB) InSmallSteps() {
	db.summarizing = summarizing{rows: 3, topRows: 1, step: 2, least: 1, bytes: 1500}
	db.bodiesBytesMax = 600
	db.heldBytesMax, db.codec.deltaMin = 3000, 1
}

// SummarizeAccount makes the summaries and the indexes of words of one account.
func (db *DB) SummarizeAccount(ctx context.Context, account string) error {
	return errors.Join(db.fillAccount(ctx, account, "summaries", db.summarizing.rows, db.summarizeNext),
		db.fillAccount(ctx, account, "text_units", db.summarizing.least, db.indexNext))
}

// MakeAhead makes the partitions of the weeks to come.
func (db *DB) MakeAhead(ctx context.Context) error { return db.tables.MakeAhead(ctx) }

// PackLater packs the bodies that are due after a while.
func (db *DB) PackLater(ctx context.Context, after time.Duration) error {
	now := db.now
	db.now = func() time.Time { return now().Add(after) }
	// The second time, calls that were found to be alone.
	return errors.Join(db.packer.Pack(ctx), db.packer.Pack(ctx))
}

// PackBodies packs the bodies that wait against each other, if only they save anything at all.
func (db *DB) PackBodies(ctx context.Context) error {
	db.packer.Use(repack.Rule{Largest: 1 << 20, Most: 1e9})
	return db.packer.PackAll(ctx)
}
