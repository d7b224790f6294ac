package postgres

import (
	"context"

	"promptspool/spool/database/postgres/schema"
)

// InSmallSteps makes all bounds small: summaries of a few rows, made as soon as there are any,
// few bodies and states held at a time, and deltas for states of any size.
func (db *DB) InSmallSteps() {
	db.summarizing = summarizing{rows: 3, topRows: 1, step: 2, least: 1, bytes: 1500}
	db.bodiesBytesMax = 600
	db.heldBytesMax, db.codec.deltaMin = 3000, 1
}

// SummarizeAccount makes the summaries of one account.
func (db *DB) SummarizeAccount(ctx context.Context, account string) error {
	key, err := schema.AccountKey(account)
	if err == nil {
		err = db.summarizeAccount(ctx, key)
	}
	return err
}

// MakeAhead makes the partitions of the weeks to come.
func (db *DB) MakeAhead(ctx context.Context) error { return db.tables.MakeAhead(ctx) }

// RememberUnseen bounds the tombstones of records that never arrived.
func (db *DB) RememberUnseen(max int) { db.unseenMax = max }
