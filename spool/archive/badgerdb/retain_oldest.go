package badgerdb

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// oldestMax is how many of an account's oldest records are looked up together. Lists go by
// another time, so that takes a look at the heads of all blocks.
const oldestMax = 20 * retainStep

// oldest returns the ids of the account's records and spans with the lowest order times, up
// to oldestMax, that together have as many bytes.
func (db *DB) oldest(ctx context.Context, txn *badger.Txn, k keys, excess int64) (ids []string, err error) {
	rows, err := db.oldestRows(ctx, txn, k)
	if err != nil {
		return nil, err
	}

	// Rows and spans lie in tables of their own, and go by one age.
	places := append(rows, oldestSpans(txn, k, oldestMax)...)
	slices.SortFunc(places, byAge)

	for _, p := range places[:min(len(places), oldestMax)] {
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

// byAge orders positions by time, the oldest first.
func byAge(a, b query.Position) int {
	return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.RequestID, b.RequestID))
}

// oldestRows returns the order times and ids of up to oldestMax rows of the account. No
// other row has a lower order time.
func (db *DB) oldestRows(
	ctx context.Context, txn *badger.Txn, k keys,
) (places []query.Position, err error) {
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
		places, err = db.acceptedUntil(ctx, txn, k, end)
		if err != nil || len(places) > 0 {
			return places, err
		}
		// Every row of the block has been deleted already.
	}

	return nil, nil
}

// acceptedUntil returns the order times and ids of the rows with the lowest order times, up
// to oldestMax, and none beyond a second.
func (db *DB) acceptedUntil(
	ctx context.Context, txn *badger.Txn, k keys, end int64,
) (places []query.Position, err error) {
	var q query.Query
	if end < math.MaxInt64 {
		if q, err = acceptedBefore(time.Unix(end+1, 0)); err != nil {
			return nil, err
		}
	}

	const want = rowcode.PlaceColumns | 1<<rowcode.ColumnAccepted
	_, err = db.scan(ctx, txn, k, &q, want, func(row *wire.Row) (bool, error) {
		places = append(places, query.Position{At: row.AcceptedAt, RequestID: row.RequestID})
		// Most of what came in any order is later than the oldest.
		if len(places) == 2*oldestMax {
			slices.SortFunc(places, byAge)
			places = places[:oldestMax]
		}
		return true, nil
	})
	slices.SortFunc(places, byAge)

	return places[:min(len(places), oldestMax)], err
}
