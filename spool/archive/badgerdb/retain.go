package badgerdb

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
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
	q, err := acceptedBefore(cutoff)
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

// acceptedBefore returns a query for the records whose order time is before a time.
func acceptedBefore(t time.Time) (query.Query, error) {
	value, err := json.Marshal(t.UTC())
	if err != nil {
		return query.Query{}, err
	}
	return query.CompileMatch(&wire.Filter{Field: "accepted_at", Operator: "lt", Value: value}, "")
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

		// A few at a time, so that writes come in between.
		for part := range slices.Chunk(oldest, retainStep) {
			n, err := db.deleteRecords(ctx, k, part, nil, false)
			if dropped += n.Records; err != nil {
				return dropped, err
			}
		}
	}
}
