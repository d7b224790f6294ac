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
	err = db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		var page []archive.Position
		q := archive.Query{After: after}
		if _, err := db.scan(ctx, txn, k, q, func(row *wire.Row) (bool, error) {
			page = append(page, archive.PositionOf(row))
			return len(page) < limit, nil
		}); err != nil {
			return nil, err
		}
		f := folding{txn: txn, keys: k, records: make(map[string]*record)}
		for _, p := range page {
			r, err := f.record(p.RequestID)
			if err != nil {
				return nil, err
			}
			if r.state.Orphan() {
				continue
			}
			body := func() ([]byte, error) { return requestBody(txn, k, p.RequestID) }
			if r.changed, err = change(&r.state.Request.Value, body); err != nil {
				return nil, err
			}
			if r.changed {
				changed++
			}
		}
		if len(page) == limit {
			end = &page[limit-1]
		}
		err := f.finish()
		return f.writes, err
	})
	return end, changed, err
}
