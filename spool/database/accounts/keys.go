package accounts

import (
	"cmp"
	"context"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/database/keyed"
)

// CreateKey keeps a key under the hash of its secret; see auth.Store.
func (s *Store) CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.Key, error) {
		made, found, err := keyed.Load[wire.Key](ctx, tx, hashKey(keys, hash))
		// The bootstrap key is created at every start: a revoked one must not come back.
		if found && made.RevokedAt != nil {
			err = wire.Errorf(wire.CodeConflict,
				"The key %s is revoked and stays so. Make another one.", made.ID)
		}
		if found || err != nil {
			return made, err
		}

		made = k
		made.AccountID, err = s.account(ctx, tx, k.AccountName)
		if err != nil {
			return made, err
		}
		return made, cmp.Or(tx.Put(hashKey(keys, hash), made), s.notifyKey(tx, made))
	})
}

// KeyByHash finds a key; see auth.Store.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error) {
	return get[wire.Key](ctx, s.rows, hashKey(keys, hash), errNoKey)
}

// Keys lists all keys, oldest first; see auth.Store.
func (s *Store) Keys(ctx context.Context) ([]wire.Key, error) {
	return list(ctx, s, keys, func(k *wire.Key) (time.Time, string) { return k.CreatedAt, k.ID })
}

// RevokeKey revokes a key by its id; see auth.Store. It reads all keys: a server has few,
// and revokes rarely.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.Key, error) {
		k, err := keyByID(ctx, tx, id)
		if err != nil {
			return wire.Key{}, err
		}
		// A second revocation keeps the moment of the first.
		if k.Of.RevokedAt != nil {
			return *k.Of, nil
		}

		at = at.UTC()
		k.Of.RevokedAt = &at
		return *k.Of, tx.Put(k.Key, k.Of)
	})
}

// RotateKey makes the successor of a key; see auth.Store.
func (s *Store) RotateKey(
	ctx context.Context, id string, hash [32]byte, change func(old *wire.Key) (wire.Key, error),
) (wire.Key, error) {
	return changed(ctx, s, true, func(tx *keyed.Tx) (wire.Key, error) {
		old, err := keyByID(ctx, tx, id)
		if err != nil {
			return wire.Key{}, err
		}

		made, err := change(old.Of)
		if err == nil {
			err = tx.Put(old.Key, old.Of)
		}
		if err == nil {
			err = cmp.Or(tx.Put(hashKey(keys, hash), made), s.notifyKey(tx, made))
		}
		return made, err
	})
}

// notifyKey tells the key's project that it was made.
func (s *Store) notifyKey(tx *keyed.Tx, k wire.Key) error {
	return Notify(tx, k.AccountID, s.now(), wire.Notice{
		Type:   wire.NoticeKeyCreated,
		Title:  "The key " + cmp.Or(k.Name, k.ID) + " was created",
		Text:   "Its scope is " + k.Scope.String() + ".",
		URL:    "/keys",
		Labels: map[string]string{"key": k.ID, "name": k.Name, "scope": k.Scope.String()},
	})
}

// keyByID finds a key, or returns errNoKey.
func keyByID(ctx context.Context, tx *keyed.Tx, id string) (*keyed.Item[wire.Key], error) {
	k, err := find(ctx, tx, keys, func(k *wire.Key) bool { return k.ID == id })
	if err == nil && k == nil {
		err = errNoKey()
	}
	return k, err
}

// TouchKeys notes when keys were last used; see auth.Store.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return s.change(ctx, true, func(tx *keyed.Tx) error {
		all, err := keyed.List[wire.Key](ctx, tx, keyed.Key{Kind: keys})
		for _, k := range all {
			// Notes may come in any order: the latest use stays.
			at, ok := used[k.Of.ID]
			if err != nil || !ok || k.Of.LastUsedAt != nil && !at.After(*k.Of.LastUsedAt) {
				continue
			}
			at = at.UTC()
			k.Of.LastUsedAt = &at
			err = tx.Put(k.Key, k.Of)
		}
		return err
	})
}

func errNoKey() *wire.Error {
	return wire.Errorf(wire.CodeNotFound,
		"There is no such key. \"promptspool keys list\" shows the existing ones.")
}
