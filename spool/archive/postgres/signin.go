package postgres

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// Failures finds failed sign-ins; see auth.FailureStore.
func (db *DB) Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error) {
	type row struct {
		source []byte
		wire.Failures
	}
	rows, err := list(ctx, db, func(r *row) []any { return []any{&r.source, &r.Count, &r.Until} },
		`SELECT source, count, until FROM sign_in_failures WHERE source = ANY($1::bytea[])`, bytesOf(sources))
	if err != nil {
		return nil, err
	}
	found := make([]wire.Failures, len(sources))
	for _, r := range rows {
		for i, source := range sources {
			if bytes.Equal(source[:], r.source) {
				found[i] = r.Failures
			}
		}
	}
	return found, nil
}

func bytesOf(hashes [][32]byte) [][]byte {
	all := make([][]byte, len(hashes))
	for i := range hashes {
		all[i] = bytes.Clone(hashes[i][:])
	}
	return all
}

// AddFailure counts a failed sign-in, and forgets those whose time is over; see auth.FailureStore.
func (db *DB) AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error {
	all := bytesOf(sources)
	slices.SortFunc(all, bytes.Compare) // in one order at all servers: they must not wait for each other in a circle
	return db.change(ctx, false, func(tx pgx.Tx) error {
		for _, source := range all {
			if _, err := tx.Exec(ctx, `INSERT INTO sign_in_failures AS f (source, count, until) VALUES ($1, 1, $3) ON CONFLICT (source) DO UPDATE SET
				count = CASE WHEN f.until <= $2 THEN 1 ELSE f.count + 1 END, until = CASE WHEN f.until <= $2 THEN excluded.until ELSE f.until END`,
				source, now.UTC(), until.UTC()); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `DELETE FROM sign_in_failures WHERE until <= $1`, now.UTC())
		return err
	})
}

// TakeBackFailure counts one less; see auth.FailureStore.
func (db *DB) TakeBackFailure(ctx context.Context, sources [][32]byte) error {
	for _, source := range sources { // one by one: none waits for another
		err := db.do(ctx, `UPDATE sign_in_failures SET count = count - 1 WHERE source = $1 AND count > 0`, source[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// ForgetFailures forgets failed sign-ins; see auth.FailureStore.
func (db *DB) ForgetFailures(ctx context.Context, source [32]byte) error {
	return db.do(ctx, `DELETE FROM sign_in_failures WHERE source = $1`, source[:])
}
