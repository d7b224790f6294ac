package badgerdb

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// CreateKey keeps a key under the hash of its secret; see auth.Store.
func (db *DB) CreateKey(ctx context.Context, hash [32]byte, k wire.Key) (wire.Key, error) {
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		var stored wire.Key
		found, err := load(txn, secretKey(hash), &stored)
		if err != nil {
			return nil, err
		}
		if found {
			if k = stored; k.RevokedAt != nil {
				return nil, wire.Errorf(wire.CodeConflict, "The key %s is revoked and stays so. Make another one.", k.ID)
			}
			return nil, nil
		}
		account, writes, err := db.account(txn, k.AccountName)
		if err != nil {
			return nil, err
		}
		k.AccountID = account.ID
		value, err := wire.Marshal(k)
		return append(writes, write{secretKey(hash), value}), err
	})
	if err != nil {
		return wire.Key{}, err
	}
	return k, nil
}

// account finds an account by name, or makes it: then the writes say how.
func (db *DB) account(txn *badger.Txn, name string) (wire.Account, []write, error) {
	var a wire.Account
	found, err := load(txn, accountKey(name), &a)
	if found || err != nil {
		return a, nil, err
	}
	a = wire.Account{ID: wire.NewID(), Name: name, CreatedAt: db.now().UTC()}
	value, err := wire.Marshal(a)
	return a, []write{{accountKey(name), value}}, err
}

// KeyByHash finds a key; see auth.Store.
func (db *DB) KeyByHash(ctx context.Context, hash [32]byte) (wire.Key, error) {
	var k wire.Key
	err := db.view(func(txn *badger.Txn) error {
		found, err := load(txn, secretKey(hash), &k)
		if err == nil && !found {
			err = errNoKey()
		}
		return err
	})
	return k, err
}

// Keys lists all keys, oldest first; see auth.Store.
func (db *DB) Keys(ctx context.Context) ([]wire.Key, error) {
	keys := []wire.Key{}
	err := db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, secretPrefix, nil, func(key, value []byte) (bool, error) {
			var k wire.Key
			err := decode(key, value, &k)
			keys = append(keys, k)
			return true, err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(keys, func(a, b wire.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// RevokeKey revokes a key by its id; see auth.Store. It reads all keys: a server has few, and revokes rarely.
func (db *DB) RevokeKey(ctx context.Context, id string, at time.Time) (wire.Key, error) {
	var revoked wire.Key
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		found := false
		err = db.each(ctx, txn, secretPrefix, nil, func(key, value []byte) (bool, error) {
			var k wire.Key
			if err := decode(key, value, &k); err != nil || k.ID != id {
				return true, err
			}
			found = true
			if k.RevokedAt == nil {
				utc := at.UTC()
				k.RevokedAt = &utc
				value, err = wire.Marshal(k)
				writes = []write{{slices.Clone(key), value}}
			}
			revoked = k
			return false, err
		})
		if err == nil && !found {
			err = errNoKey()
		}
		return writes, err
	})
	if err != nil {
		return wire.Key{}, err
	}
	return revoked, nil
}

// TouchKeys notes when keys were last used; see auth.Store.
func (db *DB) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		err = db.each(ctx, txn, secretPrefix, nil, func(key, value []byte) (bool, error) {
			var k wire.Key
			if err := decode(key, value, &k); err != nil {
				return false, err
			}
			at, ok := used[k.ID]
			if !ok || k.LastUsedAt != nil && !at.After(*k.LastUsedAt) {
				return true, nil
			}
			utc := at.UTC()
			k.LastUsedAt = &utc
			writes, err = store(writes, slices.Clone(key), k)
			return true, err
		})
		return writes, err
	})
}

func errNoKey() error {
	return wire.Errorf(wire.CodeNotFound, "There is no such key. \"promptspool keys list\" shows those that there are.")
}
