package accounts

import (
	"context"
	"time"

	"promptspool/api/wire"
)

// CreateKey keeps a key under the hash of its secret; see auth.Store.
func (s *Store) CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error) {
	return changed(ctx, s, true, func(tx Tx) (wire.Key, error) {
		var made wire.Key
		found, err := tx.Get(Keys, string(hash[:]), &made)
		// The bootstrap key is created at every start: a revoked one must not come back.
		if found && made.RevokedAt != nil {
			err = wire.Errorf(wire.CodeConflict,
				"The key %s is revoked and stays so. Make another one.", made.ID)
		}
		if found || err != nil {
			return made, err
		}

		made = k
		if made.AccountID, err = s.account(tx, k.AccountName); err != nil {
			return made, err
		}
		return made, tx.Add(Keys, string(hash[:]), &made)
	})
}

// KeyByHash finds a key; see auth.Store.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error) {
	return find[wire.Key](ctx, s, Keys, hash, errNoKey)
}

// Keys lists all keys, oldest first; see auth.Store.
func (s *Store) Keys(ctx context.Context) ([]wire.Key, error) {
	return list(ctx, s, Keys, func(*wire.Key) bool { return true },
		func(k *wire.Key) (time.Time, string) { return k.CreatedAt, k.ID })
}

// RevokeKey revokes a key by its id; see auth.Store. It reads all keys: a server has few,
// and revokes rarely.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error) {
	return changed(ctx, s, true, func(tx Tx) (wire.Key, error) {
		hash, err := hashOf(tx, Keys, func(row any) bool { return row.(*wire.Key).ID == id })
		if err != nil {
			return wire.Key{}, err
		}
		k, err := get[wire.Key](tx, Keys, hash, errNoKey)
		// A second revocation keeps the moment of the first.
		if err != nil || k.RevokedAt != nil {
			return k, err
		}

		at = at.UTC()
		k.RevokedAt = &at
		return k, tx.Put(Keys, hash, &k)
	})
}

// hashOf returns the key of the first row that is wanted; "" if there is none.
func hashOf(tx Tx, t Table, wanted func(row any) bool) (string, error) {
	rows, err := tx.List(t)
	for _, r := range rows {
		if wanted(r.Of) {
			return r.Key, nil
		}
	}

	return "", err
}

// TouchKeys notes when keys were last used; see auth.Store.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return s.db.Change(ctx, true, func(tx Tx) error {
		rows, err := tx.List(Keys)
		for _, r := range rows {
			k := r.Of.(*wire.Key)
			// Notes may come in any order: the latest use stays.
			at, ok := used[k.ID]
			if err != nil || !ok || k.LastUsedAt != nil && !at.After(*k.LastUsedAt) {
				continue
			}
			at = at.UTC()
			k.LastUsedAt = &at
			err = tx.Put(Keys, r.Key, k)
		}
		return err
	})
}

func errNoKey() *wire.Error {
	return wire.Errorf(wire.CodeNotFound,
		"There is no such key. \"promptspool keys list\" shows those that there are.")
}
