package badgerdb

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// DropBefore leaves everything to be deleted one by one; see archive.Store.
func (db *DB) DropBefore(_ context.Context, cutoff time.Time) (int64, time.Time, error) {
	return 0, cutoff, nil
}

// Oldest returns the ids of the records with the lowest order times; see archive.Store.
func (db *DB) Oldest(
	ctx context.Context, account string, before time.Time, limit int,
) (ids []string, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}

	err = db.view(func(txn *badger.Txn) error {
		rows, err := db.oldestRows(ctx, txn, k, before, limit)

		// Rows and spans are in separate tables, and go by one age.
		places := append(rows, oldestSpans(txn, k, limit)...)
		slices.SortFunc(places, byAge)
		for _, p := range places[:min(len(places), limit)] {
			if before.IsZero() || p.At.Before(before) {
				ids = append(ids, p.RequestID)
			}
		}
		return err
	})

	return ids, err
}

// byAge orders positions by time, the oldest first.
func byAge(a, b query.Position) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.RequestID, b.RequestID))
}

// oldestRows returns the order times and ids of up to limit rows of the account. No other row
// has a lower order time.
func (db *DB) oldestRows(
	ctx context.Context, txn *badger.Txn, k keys, before time.Time, limit int,
) (places []query.Position, err error) {
	if !before.IsZero() {
		return db.acceptedBefore(ctx, txn, k, before, limit)
	}
	spans, err := db.spans(ctx, txn, k)
	if err != nil {
		return nil, err
	}

	// The block whose last row came first: with no later rows, few other blocks are read.
	var ends []int64
	for _, s := range spans[1:] {
		ends = append(ends, s.head.LastAccepted())
	}
	slices.Sort(ends)
	for _, end := range append(ends, math.MaxInt64) {
		until := time.Time{}
		if end < math.MaxInt64 {
			until = time.Unix(end+1, 0)
		}
		places, err = db.acceptedBefore(ctx, txn, k, until, limit)
		if err != nil || len(places) > 0 {
			return places, err
		}
		// Every row of the block has been deleted already.
	}

	return nil, nil
}

// acceptedBefore returns the order times and ids of the rows with the lowest order times
// before a moment (zero: any), up to limit.
func (db *DB) acceptedBefore(
	ctx context.Context, txn *badger.Txn, k keys, before time.Time, limit int,
) (places []query.Position, err error) {
	var q query.Query
	if !before.IsZero() {
		value, err := json.Marshal(before.UTC())
		if err != nil {
			return nil, err
		}
		q, err = query.CompileMatch(&wire.Filter{Field: "accepted_at", Operator: "lt", Value: value}, "")
		if err != nil {
			return nil, err
		}
	}

	const want = rowcode.PlaceColumns | 1<<rowcode.ColumnAccepted
	_, err = db.scan(ctx, txn, k, &q, want, func(row *wire.Row) (bool, error) {
		places = append(places, query.Position{At: row.AcceptedAt, RequestID: row.RequestID})
		// Most of what came in any order is later than the oldest.
		if len(places) == 2*limit {
			slices.SortFunc(places, byAge)
			places = places[:limit]
		}
		return true, nil
	})
	slices.SortFunc(places, byAge)

	return places[:min(len(places), limit)], err
}
