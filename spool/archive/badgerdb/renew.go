package badgerdb

import (
	"context"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// renewTime is for how long of each minute Run renews records: a tenth of a processor.
const renewTime = 6 * time.Second

// renewalKey holds how far the records of earlier versions are up to date.
var renewalKey = []byte{ofServer, 'n'}

// renew brings records of earlier versions up to date, a part of them each time.
func (db *DB) renew(ctx context.Context) {
	// What failed is tried again in a minute, from where it stopped.
	err := archive.Renew(ctx, db, renewTime, db.logger)
	if err != nil && ctx.Err() == nil && !wire.IsCode(err, wire.CodeUnavailable) {
		db.logger.Error("older records could not be brought up to date; retrying", "error", err)
	}
}

// Renewal returns how far records are up to date; see archive.Renewable.
func (db *DB) Renewal(context.Context) (r archive.Renewal, err error) {
	err = db.view(func(txn *badger.Txn) error {
		_, err := load(txn, renewalKey, &r)
		return err
	})
	return r, err
}

// SetRenewal keeps how far records are up to date; see archive.Renewable.
func (db *DB) SetRenewal(ctx context.Context, r archive.Renewal) error {
	return db.commit.do(ctx, 0, func(*badger.Txn) ([]write, error) {
		return store(nil, renewalKey, r)
	})
}
