package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// selectReset reads what scanReset scans.
const selectReset = `SELECT user_id, made_by, resets.created_at, expires_at, ` + userColumns + `
	FROM resets JOIN users ON users.id = user_id WHERE hash = $1`

func scanReset(r *wire.Reset, u *wire.User) []any {
	return append([]any{&r.UserID, &r.By, &r.CreatedAt, &r.ExpiresAt}, scanUser(u)...)
}

func errNoReset() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such reset link, or it has been used.")
}

// CreateReset keeps a reset link; see auth.ResetStore. It removes those that have expired.
func (db *DB) CreateReset(ctx context.Context, hash [32]byte, r wire.Reset) error {
	return db.change(ctx, true, func(tx pgx.Tx) error {
		// Two links of one person that are made at the same time would not see each other.
		if _, err := tx.Exec(ctx, `SELECT FROM users WHERE id = $1 FOR UPDATE`, r.UserID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM resets WHERE user_id = $1 OR expires_at < $2`, r.UserID, r.CreatedAt); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO resets (hash, user_id, made_by, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`,
			hash[:], r.UserID, r.By, r.CreatedAt, r.ExpiresAt)
		return err
	})
}

// Reset finds a reset link; see auth.ResetStore.
func (db *DB) Reset(ctx context.Context, hash [32]byte) (r wire.Reset, u wire.User, err error) {
	err = db.one(ctx, errNoReset(), scanReset(&r, &u), selectReset, hash[:])
	return r, u, err
}

// SpendReset sets the password of a link's person; see auth.ResetStore. It locks the person before the link, as
// ChangeUser does, so that neither waits for the other in a circle.
func (db *DB) SpendReset(ctx context.Context, hash [32]byte, password string, at time.Time) (wire.Reset, wire.User, error) {
	var r wire.Reset
	var u wire.User
	err := db.change(ctx, false, func(tx pgx.Tx) error {
		r, u = wire.Reset{}, wire.User{}
		err := tx.QueryRow(ctx, selectReset+` FOR UPDATE OF users`, hash[:]).Scan(scanReset(&r, &u)...)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && (at.After(r.ExpiresAt) || u.DisabledAt != nil) {
			return errNoReset()
		}
		if err != nil {
			return err
		}

		// Whoever waited above finds the link gone now.
		tag, err := tx.Exec(ctx, `DELETE FROM resets WHERE hash = $1`, hash[:])
		if err == nil && tag.RowsAffected() == 0 {
			err = errNoReset()
		}
		if err != nil {
			return err
		}

		apply(&u, wire.UserChange{At: at})
		_, err = tx.Exec(ctx, `UPDATE users SET sessions_from = $2, password = $3 WHERE id = $1`, u.ID, u.SessionsFrom, password)
		return err
	})
	if err != nil {
		return wire.Reset{}, wire.User{}, err
	}
	return r, u, nil
}
