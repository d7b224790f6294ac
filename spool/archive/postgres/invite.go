package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// inviteColumns are what scanInvite reads.
const inviteColumns = `id, account_name, role, created_at, expires_at, setup`

const insertInvite = `INSERT INTO invites (hash, ` + inviteColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`

func scanInvite(i *wire.Invite) []any {
	return []any{&i.ID, &i.AccountName, &i.Role, &i.CreatedAt, &i.ExpiresAt, &i.Setup}
}

func errNoInvite() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such invite, or it is spent.")
}

// CreateInvite keeps an invite; see auth.InviteStore.
func (db *DB) CreateInvite(ctx context.Context, hash [32]byte, i wire.Invite) error {
	return db.do(ctx, insertInvite, hash[:], i.ID, i.AccountName, i.Role, i.CreatedAt, i.ExpiresAt, i.Setup)
}

// Invite finds an invite; see auth.InviteStore.
func (db *DB) Invite(ctx context.Context, hash [32]byte) (i wire.Invite, err error) {
	err = db.one(ctx, errNoInvite(), scanInvite(&i), `SELECT `+inviteColumns+` FROM invites WHERE hash = $1`, hash[:])
	return i, err
}

// Invites lists the invites of an account; see auth.InviteStore.
func (db *DB) Invites(ctx context.Context, accountName string) ([]wire.Invite, error) {
	return list(ctx, db, scanInvite, `SELECT `+inviteColumns+` FROM invites WHERE account_name = $1 AND NOT setup ORDER BY created_at, id`, accountName)
}

// DeleteInvite takes an invite back; see auth.InviteStore.
func (db *DB) DeleteInvite(ctx context.Context, accountName, id string) error {
	err := db.change(ctx, false, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM invites WHERE account_name = $1 AND id = $2 AND NOT setup`, accountName, id)
		if err == nil && tag.RowsAffected() == 0 {
			err = errNoInvite()
		}
		return err
	})
	return unlessNone(err, errNoInvite())
}
