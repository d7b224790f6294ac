package badgerdb

import (
	"bytes"
	"context"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// resetPrefix is what the keys of reset links begin with.
var resetPrefix = []byte{ofServer, 'r'}

// CreateReset keeps a reset link; see auth.ResetStore. It removes those that have expired.
func (db *DB) CreateReset(ctx context.Context, hash [32]byte, r wire.Reset) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		writes, err := db.dropResets(ctx, txn, func(old wire.Reset) bool {
			return old.UserID == r.UserID || old.ExpiresAt.Before(r.CreatedAt)
		})
		if err != nil {
			return nil, err
		}
		return store(writes, serverKey(resetPrefix, hash[:]), r)
	})
}

// endResets returns the writes that end the links of a person.
func (db *DB) endResets(ctx context.Context, txn *badger.Txn, userID string) ([]write, error) {
	return db.dropResets(ctx, txn, func(r wire.Reset) bool { return r.UserID == userID })
}

// dropResets returns the writes that remove some links. It reads all of the server's: they are few, and live for a day.
func (db *DB) dropResets(ctx context.Context, txn *badger.Txn, drop func(wire.Reset) bool) (writes []write, err error) {
	err = db.each(ctx, txn, resetPrefix, nil, func(key, value []byte) (bool, error) {
		var r wire.Reset
		err := decode(key, value, &r)
		if err == nil && drop(r) {
			writes = append(writes, write{bytes.Clone(key), nil})
		}
		return true, err
	})
	return writes, err
}

// Reset finds a reset link; see auth.ResetStore.
func (db *DB) Reset(ctx context.Context, hash [32]byte) (r wire.Reset, _ wire.User, err error) {
	var u user
	err = db.view(func(txn *badger.Txn) error { return loadReset(txn, hash, &r, &u) })
	return r, u.User, err
}

func loadReset(txn *badger.Txn, hash [32]byte, r *wire.Reset, u *user) error {
	found, err := load(txn, serverKey(resetPrefix, hash[:]), r)
	if err == nil && !found {
		err = errNoReset()
	}
	if err != nil {
		return err
	}
	return loadUser(txn, r.UserID, u)
}

func errNoReset() *wire.Error {
	return wire.Errorf(wire.CodeNotFound, "There is no such reset link, or it has been used.")
}

// SpendReset sets the password of a link's person; see auth.ResetStore.
func (db *DB) SpendReset(ctx context.Context, hash [32]byte, password string, at time.Time) (wire.Reset, wire.User, error) {
	var r wire.Reset
	var u user
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		r, u = wire.Reset{}, user{}
		if err := loadReset(txn, hash, &r, &u); err != nil {
			return nil, err
		}
		if at.After(r.ExpiresAt) || u.DisabledAt != nil {
			return nil, errNoReset()
		}

		apply(&u, wire.UserChange{Password: &password, At: at})
		writes, err := db.endResets(ctx, txn, u.ID)
		if err != nil {
			return nil, err
		}
		return store(writes, serverKey(userPrefix, u.ID), u)
	})
	if err != nil {
		return wire.Reset{}, wire.User{}, err
	}
	return r, u.User, nil
}
