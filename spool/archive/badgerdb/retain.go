package badgerdb

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb/blocks"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// retainStep is how many records one transaction deletes.
const retainStep = 200

// Retain deletes records beyond the retention, the oldest first, without tombstones. It
// returns how many it deleted.
func (db *DB) Retain(ctx context.Context, r archive.Retention) (dropped int64, err error) {
	accounts, err := db.accountKeys()
	for k := range accounts {
		// By age first: what is gone then no longer counts against the bytes.
		if err == nil && r.Age > 0 {
			dropped, err = db.dropOlder(ctx, k, db.now().Add(-r.Age), dropped)
		}
		if err == nil && r.Bytes > 0 {
			dropped, err = db.dropBeyond(ctx, k, r.Bytes, dropped)
		}
	}

	if dropped > 0 {
		db.askErase()
	}
	return dropped, err
}

// dropOlder deletes an account's records from before cutoff. It returns dropped plus
// their number.
func (db *DB) dropOlder(ctx context.Context, k keys, cutoff time.Time, dropped int64) (int64, error) {
	value, err := json.Marshal(cutoff)
	if err != nil {
		return dropped, err
	}
	q, err := query.Compile(wire.Search{FilterGroup: &wire.Filter{
		Field:    "accepted_at",
		Operator: "lt",
		Value:    value,
	}})
	if err != nil {
		return dropped, err
	}

	for {
		ids, err := db.firstIDs(ctx, k, q, retainStep)
		if err != nil {
			return dropped, err
		}

		// A few at a time, so that writes come in between.
		n, err := db.deleteRecords(ctx, k, ids, nil, false)
		if dropped += n.Records; err != nil || len(ids) < retainStep {
			break
		}
	}

	if err == nil {
		dropped, err = db.dropOlderSpans(ctx, k, cutoff, dropped)
	}
	if err != nil {
		return dropped, err
	}

	// Orphans have no row: their age is that of their last event.
	old := func(s *archive.State) bool { return s.History[len(s.History)-1].At.Before(cutoff) }
	n, err := db.deleteOrphans(ctx, k, old, false)
	return dropped + n.Records, err
}

// dropOlderSpans is dropOlder for records that are only a span, which have no row.
func (db *DB) dropOlderSpans(ctx context.Context, k keys, cutoff time.Time, dropped int64) (int64, error) {
	for {
		var ids []string
		err := db.view(func(txn *badger.Txn) error {
			// In steps: a transaction holds only so many deletions.
			for _, p := range oldestSpans(txn, k, retainStep) {
				if p.At.Before(cutoff) {
					ids = append(ids, p.RequestID)
				}
			}
			return nil
		})
		if err != nil || len(ids) == 0 {
			return dropped, err
		}

		n, err := db.deleteRecords(ctx, k, ids, nil, false)
		if dropped += n.Records; err != nil {
			return dropped, err
		}
	}
}

// firstIDs returns the ids of the first records that a query finds.
func (db *DB) firstIDs(ctx context.Context, k keys, q query.Query, limit int) (ids []string, err error) {
	err = db.view(func(txn *badger.Txn) error {
		_, err := db.scan(ctx, txn, k, &q, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
			ids = append(ids, row.RequestID)
			return len(ids) < limit, nil
		})
		return err
	})
	return ids, err
}

// dropBeyond deletes an account's oldest records until it holds at most so many bytes. It
// returns dropped plus their number.
func (db *DB) dropBeyond(ctx context.Context, k keys, most, dropped int64) (int64, error) {
	for {
		var oldest []string
		err := db.view(func(txn *badger.Txn) error {
			count, err := loadTally(txn, k)
			// Asked anew each time: others write and delete meanwhile.
			if err == nil && int64(count.bytes) > most {
				oldest, err = db.oldest(ctx, txn, k, int64(count.bytes)-most)
			}
			return err
		})
		if err != nil || len(oldest) == 0 {
			return dropped, err
		}

		n, err := db.deleteRecords(ctx, k, oldest, nil, false)
		if dropped += n.Records; err != nil {
			return dropped, err
		}
	}
}

// oldest returns the ids of the account's oldest records and spans, up to retainStep, that
// together have as many bytes.
func (db *DB) oldest(ctx context.Context, txn *badger.Txn, k keys, excess int64) (ids []string, err error) {
	rows, err := db.oldestRows(ctx, txn, k)
	if err != nil {
		return nil, err
	}

	// Rows and spans lie in tables of their own, and go by one age.
	slices.Reverse(rows)
	rows = rows[:min(len(rows), retainStep)]
	places := append(rows, oldestSpans(txn, k, retainStep)...)
	slices.SortFunc(places, func(a, b query.Position) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.RequestID, b.RequestID))
	})

	for _, p := range places[:min(len(places), retainStep)] {
		if excess <= 0 {
			break
		}

		id, _ := parseUUID(p.RequestID)
		state, err := db.state(txn, k, id)
		if err != nil {
			return nil, err
		}
		excess -= int64(state.Bytes())
		ids = append(ids, p.RequestID)
	}

	return ids, nil
}

// oldestRows returns the places of the account's last rows, newest first: those from the
// last block on.
func (db *DB) oldestRows(
	ctx context.Context, txn *badger.Txn, k keys,
) (places []query.Position, err error) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableBlock), Reverse: true})
	defer it.Close()

	var q query.Query
	it.Seek(append(k.table(tableBlock), 0xff, 0xff, 0xff, 0xff))
	for {
		// Without a block left, everything stands alone, and all of it is read.
		if q.After = nil; it.Valid() {
			at, id := blocks.DecodePlace(it.Item().Key())
			// A nanosecond later, so that the block's first row is in.
			q.After = &query.Position{At: at.Add(1), RequestID: uuid(id).String()}
		}

		_, err = db.scan(ctx, txn, k, &q, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
			places = append(places, query.PositionOf(row))
			return true, nil
		})
		if err != nil || len(places) > 0 || q.After == nil {
			return places, err
		}

		it.Next() // every row of the block has been deleted already
	}
}
