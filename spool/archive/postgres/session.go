package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

const insertSession = `INSERT INTO sessions (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`

// CreateSession keeps a session; see auth.SessionStore.
func (db *DB) CreateSession(ctx context.Context, hash [32]byte, s wire.Session) error {
	return db.change(ctx, true, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE expires_at < $1`, s.CreatedAt.Add(-wire.SessionKept)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertSession, hash[:], s.UserID, s.CreatedAt, s.ExpiresAt)
		return err
	})
}

// Session finds a session; see auth.SessionStore.
func (db *DB) Session(ctx context.Context, hash [32]byte) (s wire.Session, u wire.User, err error) {
	none := wire.Errorf(wire.CodeNotFound, "There is no such session.")
	places := append([]any{&s.UserID, &s.CreatedAt, &s.ExpiresAt}, scanUser(&u)...)
	err = db.one(ctx, none, places, `SELECT user_id, sessions.created_at, expires_at, `+userColumns+`
		FROM sessions JOIN users ON users.id = user_id WHERE hash = $1`, hash[:])
	return s, u, err
}

// EndSession ends a session; see auth.SessionStore.
func (db *DB) EndSession(ctx context.Context, hash [32]byte, at time.Time) error {
	return db.do(ctx, `UPDATE sessions SET expires_at = $2 WHERE hash = $1 AND expires_at > $2`, hash[:], at.UTC())
}
