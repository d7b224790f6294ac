package badgerdb

import (
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Rewrite changes what is derived of requests; see archive.Store.
func (db *DB) Rewrite(ctx context.Context, account string, after *archive.Position, limit int, change archive.Change) (end *archive.Position, changed int, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, 0, err
	}
	var page []archive.Position
	q := archive.Query{After: after}
	if _, err := db.Scan(ctx, account, q, placeColumns, func(row *wire.Row) (bool, error) {
		page = append(page, archive.PositionOf(row))
		return len(page) < limit, nil
	}); err != nil {
		return nil, 0, err
	}
	listed := 0
	err = db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		changed = 0
		f := db.newFolding(txn, k)
		for _, p := range page {
			r, err := f.record(p.RequestID)
			if err != nil {
				return nil, err
			}
			if r.state.Orphan() {
				continue
			}
			body := func() ([]byte, error) { return db.requestBody(txn, k, p.RequestID) }
			if r.changed, err = change(r.state.Request.At, &r.state.Request.Value, body); err != nil {
				return nil, err
			}
			if r.changed {
				changed++
			}
		}
		err := f.finish()
		listed = f.listed
		return f.writes, err
	})
	if err != nil {
		return nil, 0, err
	}
	db.rowsWritten(k, listed)
	if len(page) == limit {
		end = &page[limit-1]
	}
	return end, changed, nil
}
