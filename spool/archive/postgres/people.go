package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"promptspool/api/wire"
)

// userColumns are what scanUser reads.
const userColumns = `users.id, email, account_id, account_name, role, users.created_at, disabled_at, sessions_from, founder`

const insertUser = `INSERT INTO users (id, email, account_id, account_name, role, created_at, disabled_at, sessions_from, founder, password)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

func scanUser(u *wire.User) []any {
	return []any{&u.ID, &u.Email, &u.AccountID, &u.AccountName, &u.Role, &u.CreatedAt, &u.DisabledAt, &u.SessionsFrom, &u.Founder}
}

// CreateUser keeps a person; see auth.UserStore. They come one after the other, at whatever server: only the first may use the code of a
// fresh one.
func (db *DB) CreateUser(ctx context.Context, u wire.User, password string, invite [32]byte) (wire.User, error) {
	given := u
	err := db.change(ctx, false, func(tx pgx.Tx) error {
		u = given
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockPeople); err != nil {
			return err
		}
		if taken, err := exists(ctx, tx, `SELECT EXISTS (SELECT 1 FROM users WHERE email = $1)`, u.Email); taken || err != nil {
			return orElse(err, wire.Errorf(wire.CodeConflict, "This email is taken."))
		}
		if err := join(ctx, tx, &u, invite, db.now()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertUser, u.ID, u.Email, u.AccountID, u.AccountName, u.Role, u.CreatedAt, u.DisabledAt, u.SessionsFrom, u.Founder, password)
		return err
	})
	if err != nil {
		return wire.User{}, err
	}
	return u, nil
}

// orElse is err, or what is wrong when nothing failed.
func orElse(err error, wrong *wire.Error) error {
	if err != nil {
		return err
	}
	return wrong
}

func exists(ctx context.Context, tx pgx.Tx, sql string, args ...any) (found bool, err error) {
	err = tx.QueryRow(ctx, sql, args...).Scan(&found)
	return found, err
}

// join finds the account of an invite, which it spends, or founds one without. It sets u's account and role.
func join(ctx context.Context, tx pgx.Tx, u *wire.User, invite [32]byte, now time.Time) (err error) {
	if invite == ([32]byte{}) {
		if taken, err := exists(ctx, tx, `SELECT EXISTS (SELECT 1 FROM accounts WHERE name = $1)`, u.AccountName); taken || err != nil {
			return orElse(err, wire.Errorf(wire.CodeConflict, "This account's name is taken."))
		}
		u.AccountID = wire.NewID()
		_, err := tx.Exec(ctx, `INSERT INTO accounts (name, id, created_at) VALUES ($1, $2, $3)`, u.AccountName, u.AccountID, now.UTC())
		if isDuplicate(err) { // a key made it meanwhile
			err = wire.Errorf(wire.CodeConflict, "This account's name is taken.")
		}
		return err
	}
	var i wire.Invite
	err = tx.QueryRow(ctx, `DELETE FROM invites WHERE hash = $1 RETURNING `+inviteColumns, invite[:]).Scan(scanInvite(&i)...)
	spent := errors.Is(err, pgx.ErrNoRows)
	if err != nil && !spent {
		return err
	}
	if i.Setup {
		if spent, err = exists(ctx, tx, ownerExists, i.AccountName); err != nil {
			return err
		}
	}
	if spent || u.CreatedAt.After(i.ExpiresAt) {
		return errNoInvite()
	}
	u.AccountName, u.Role = i.AccountName, i.Role
	u.AccountID, err = account(ctx, tx, i.AccountName, now)
	return err
}

func errNoUser() *wire.Error { return wire.Errorf(wire.CodeNotFound, "There is no such person.") }

// UserByEmail finds a person; see auth.UserStore.
func (db *DB) UserByEmail(ctx context.Context, email string) (u wire.User, password string, err error) {
	err = db.one(ctx, errNoUser(), append(scanUser(&u), &password), `SELECT `+userColumns+`, password FROM users WHERE email = $1`, email)
	return u, password, err
}

// Users lists the people of an account; see auth.UserStore.
func (db *DB) Users(ctx context.Context, account string) ([]wire.User, error) {
	return list(ctx, db, scanUser, `SELECT `+userColumns+` FROM users WHERE account_id = $1 ORDER BY created_at, id`, account)
}

// Everybody lists the people of all accounts; see auth.UserStore.
func (db *DB) Everybody(ctx context.Context) ([]wire.User, error) {
	return list(ctx, db, scanUser, `SELECT `+userColumns+` FROM users ORDER BY created_at, id`)
}

// Account finds the id of an account, or makes it; see auth.UserStore.
func (db *DB) Account(ctx context.Context, name string) (id string, err error) {
	err = db.change(ctx, true, func(tx pgx.Tx) (err error) {
		id, err = account(ctx, tx, name, db.now())
		return err
	})
	return id, err
}

// ChangeUser changes a person; see auth.UserStore. It locks all people of the account, so that two owners cannot each leave the other
// as the last one.
func (db *DB) ChangeUser(ctx context.Context, account, id string, change wire.UserChange) (wire.User, error) {
	var changed wire.User
	err := db.change(ctx, true, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+userColumns+` FROM users WHERE account_id = $1 ORDER BY users.id FOR UPDATE`, account)
		if err != nil {
			return err
		}
		var u wire.User
		found, owned := false, false
		if _, err := pgx.ForEachRow(rows, scanUser(&u), func() error {
			if u.ID == id {
				apply(&u, change)
				found, changed = true, u
			}
			owned = owned || u.Role == wire.RoleOwner && u.DisabledAt == nil
			u = wire.User{}
			return nil
		}); err != nil {
			return err
		}
		switch {
		case !found:
			return errNoUser()
		case !owned:
			return wire.Errorf(wire.CodeConflict, "The account would have no owner.")
		}
		_, err = tx.Exec(ctx, `UPDATE users SET role = $2, disabled_at = $3, sessions_from = $4, password = coalesce($5, password) WHERE id = $1`,
			id, changed.Role, changed.DisabledAt, changed.SessionsFrom, change.Password)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM resets WHERE user_id = $1`, id)
		return err
	})
	if err != nil {
		return wire.User{}, err
	}
	return changed, nil
}

// apply changes all but the password.
func apply(u *wire.User, c wire.UserChange) {
	at := c.At.UTC()
	u.SessionsFrom = at
	if c.Role != nil {
		u.Role = *c.Role
	}
	switch {
	case c.Disabled != nil && !*c.Disabled:
		u.DisabledAt = nil
	case c.Disabled != nil && u.DisabledAt == nil:
		u.DisabledAt = &at
	}
}

const ownerExists = `SELECT EXISTS (SELECT 1 FROM users WHERE account_name = $1 AND role = 'owner')`

// HasOwner reports whether an account has an owner; see auth.UserStore.
func (db *DB) HasOwner(ctx context.Context, accountName string) (has bool, err error) {
	err = db.one(ctx, nil, []any{&has}, ownerExists, accountName)
	return has, err
}
