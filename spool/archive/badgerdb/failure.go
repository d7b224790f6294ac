package badgerdb

import (
	"context"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
)

// failurePrefix is what the keys of failed sign-ins begin with.
var failurePrefix = []byte{ofServer, 'f'}

// Failures finds failed sign-ins; see auth.FailureStore.
func (db *DB) Failures(ctx context.Context, sources [][32]byte) ([]wire.Failures, error) {
	found := make([]wire.Failures, len(sources))
	err := db.view(func(txn *badger.Txn) error {
		for i, source := range sources {
			if _, err := load(txn, serverKey(failurePrefix, source[:]), &found[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// AddFailure counts a failed sign-in, and forgets some of those whose time is over; see auth.FailureStore.
func (db *DB) AddFailure(ctx context.Context, sources [][32]byte, now, until time.Time) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		writes, err = db.sweep(ctx, txn, failurePrefix, serverKey(failurePrefix, sources[0][:]), func(key, value []byte) (bool, error) {
			var f wire.Failures
			err := decode(key, value, &f)
			return !now.Before(f.Until), err
		})
		for _, source := range sources {
			var f wire.Failures
			if err == nil {
				_, err = load(txn, serverKey(failurePrefix, source[:]), &f)
			}
			if err != nil {
				return nil, err
			}
			if !now.Before(f.Until) {
				f = wire.Failures{Until: until.UTC()}
			}
			f.Count++
			if writes, err = store(writes, serverKey(failurePrefix, source[:]), f); err != nil {
				return nil, err
			}
		}
		return writes, nil
	})
}

// TakeBackFailure counts one less; see auth.FailureStore.
func (db *DB) TakeBackFailure(ctx context.Context, sources [][32]byte) error {
	return db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		for _, source := range sources {
			var f wire.Failures
			key := serverKey(failurePrefix, source[:])
			if _, err = load(txn, key, &f); err != nil {
				return nil, err
			}
			if f.Count == 0 {
				continue
			}
			f.Count--
			if writes, err = store(writes, key, f); err != nil {
				return nil, err
			}
		}
		return writes, nil
	})
}

// ForgetFailures forgets failed sign-ins; see auth.FailureStore.
func (db *DB) ForgetFailures(ctx context.Context, source [32]byte) error {
	key := serverKey(failurePrefix, source[:])
	return db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		if there, err := loadBytes(txn, key); there == nil || err != nil {
			return nil, err
		}
		return []write{{key: key}}, nil
	})
}
