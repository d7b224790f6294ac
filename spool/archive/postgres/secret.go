package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// keyColumns are what scanKey reads.
const keyColumns = `id, account_id, account_name, name, scope, created_at, revoked_at, last_used_at`

// scanKey are the places that keyColumns go to.
func scanKey(k *wire.Key) []any {
	return []any{&k.ID, &k.AccountID, &k.AccountName, &k.Name, &k.Scope, &k.CreatedAt, &k.RevokedAt, &k.LastUsedAt}
}

// CreateKey keeps a key under the hash of its secret; see auth.Store.
func (db *DB) CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error) {
	made := wire.Key{}
	err := db.change(ctx, true, func(tx pgx.Tx) error {
		made = k
		err := tx.QueryRow(ctx, `SELECT `+keyColumns+` FROM keys WHERE hash = $1`, hash[:]).Scan(scanKey(&made)...)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		made = k
		if made.AccountID, err = account(ctx, tx, k.AccountName, db.now()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO keys (hash, `+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			hash[:], made.ID, made.AccountID, made.AccountName, made.Name, made.Scope, made.CreatedAt, made.RevokedAt, made.LastUsedAt)
		return err
	})
	if isDuplicate(err) { // somebody made it meanwhile
		made, err = db.KeyByHash(ctx, hash)
	}
	if err == nil && made.RevokedAt != nil {
		err = wire.Errorf(wire.CodeConflict, "The key %s is revoked and stays so. Make another one.", made.ID)
	}
	if err != nil {
		return wire.Key{}, err
	}
	return made, nil
}

// account finds the id of an account by its name, or makes one.
func account(ctx context.Context, tx pgx.Tx, name string, now time.Time) (id string, err error) {
	if _, err := tx.Exec(ctx, `INSERT INTO accounts (name, id, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING`, name, wire.NewID(), now.UTC()); err != nil {
		return "", err
	}
	err = tx.QueryRow(ctx, `SELECT id FROM accounts WHERE name = $1`, name).Scan(&id)
	return id, err
}

// KeyByHash finds a key; see auth.Store.
func (db *DB) KeyByHash(ctx context.Context, hash [32]byte) (k wire.Key, err error) {
	err = db.one(ctx, errNoKey(), scanKey(&k), `SELECT `+keyColumns+` FROM keys WHERE hash = $1`, hash[:])
	return k, err
}

// Keys lists all keys, oldest first; see auth.Store.
func (db *DB) Keys(ctx context.Context) ([]wire.Key, error) {
	return list(ctx, db, scanKey, `SELECT `+keyColumns+` FROM keys ORDER BY created_at, id`)
}

// RevokeKey revokes a key by its id; see auth.Store.
func (db *DB) RevokeKey(ctx context.Context, id string, at time.Time) (k wire.Key, err error) {
	err = db.one(ctx, errNoKey(), scanKey(&k), `UPDATE keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING `+keyColumns, id, at.UTC())
	return k, err
}

// TouchKeys notes when keys were last used; see auth.Store.
func (db *DB) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	ids, times := make([]string, 0, len(used)), make([]time.Time, 0, len(used))
	for _, id := range slices.Sorted(maps.Keys(used)) { // in one order at all servers: they must not wait for each other in a circle
		ids, times = append(ids, id), append(times, used[id].UTC())
	}
	return db.do(ctx, `UPDATE keys SET last_used_at = u.at FROM unnest($1::text[], $2::timestamptz[]) AS u (id, at)
		WHERE keys.id = u.id AND (last_used_at IS NULL OR last_used_at < u.at)`, ids, times)
}

func errNoKey() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such key. \"promptspool keys list\" shows those that there are.")
}
