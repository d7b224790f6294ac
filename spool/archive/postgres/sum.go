package postgres

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Sum gives sums every row that matches, by itself or in a summary; see archive.Store.
func (db *DB) Sum(ctx context.Context, account string, q archive.Query, want archive.Columns, sums archive.Sums) error {
	_, err := db.Scan(ctx, account, q, want, func(row *wire.Row) (bool, error) { return true, sums.Add(row) })
	return err
}
