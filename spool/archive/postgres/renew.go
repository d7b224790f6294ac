package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/postgres/connection"
)

// renewTime is for how long of each minute Run renews records: a tenth of a processor.
const renewTime = 6 * time.Second

// Accounts returns the ids of all accounts that have records; see archive.Renewable.
func (db *DB) Accounts(ctx context.Context) ([]string, error) {
	accounts, err := connection.QueryRows(ctx, db.pool, func(a *string) []any { return []any{a} },
		`SELECT DISTINCT account_id FROM account_weeks`)
	for i, key := range accounts {
		accounts[i] = accountOf(key)
	}

	return accounts, err
}

// Renewal returns how far records are up to date; see archive.Renewable.
func (db *DB) Renewal(ctx context.Context) (r archive.Renewal, err error) {
	document := ""
	err = db.pool.QueryRow(ctx, nil, []any{&document}, `SELECT renewal FROM renewal`)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, nil // nothing was renewed yet
	}
	if err == nil {
		err = json.Unmarshal([]byte(document), &r)
	}

	return r, err
}

// SetRenewal keeps how far records are up to date; see archive.Renewable.
func (db *DB) SetRenewal(ctx context.Context, r archive.Renewal) error {
	document, err := encode(r)
	if err != nil {
		return err
	}

	return db.pool.Exec(ctx, `
		INSERT INTO renewal (one, renewal) VALUES (true, $1)
		ON CONFLICT (one) DO UPDATE SET renewal = excluded.renewal`, document)
}
