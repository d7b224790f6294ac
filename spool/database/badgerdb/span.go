package badgerdb

import (
	"bytes"
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/badgerdb/blocks"
)

// Spans returns places of spans; see archive.Store.
func (db *DB) Spans(
	ctx context.Context, account string, after *query.Position, limit int,
) (places []query.Position, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		var from []byte
		if after != nil {
			place, ok := placeOf(*after)
			if !ok {
				return archive.BadID(after.RequestID)
			}
			from = append(k.span(place), 0) // the first key after it
		}
		return db.each(ctx, txn, k.table(tableSpan), from, func(key, _ []byte) (bool, error) {
			if len(places) == limit {
				return false, nil
			}
			places = append(places, spanPosition(key))
			return true, nil
		})
	})

	return places, err
}

func spanPosition(key []byte) query.Position {
	at, id := blocks.DecodePlace(key)
	return query.Position{At: at, RequestID: uuid(id).String()}
}

// oldestSpans returns the places of up to limit spans, oldest first.
func oldestSpans(txn *badger.Txn, k keys, limit int) (places []query.Position) {
	// Places begin with the newest, so the oldest are at the end of the table.
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableSpan), Reverse: true})
	defer it.Close()

	// After every key of the table.
	end := append(k.table(tableSpan), slices.Repeat([]byte{0xff}, blocks.PlaceBytes+1)...)
	for it.Seek(end); it.Valid() && len(places) < limit; it.Next() {
		places = append(places, spanPosition(it.Item().Key()))
	}

	return places
}

// Trace returns the records that have a span of a trace; see archive.Store.
func (db *DB) Trace(
	ctx context.Context, account string, trace archive.UUID, after string, limit int,
) (states []archive.State, more bool, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		prefix := append(k.table(tableTrace), trace[:]...)
		var from []byte
		if after != "" {
			id, ok := parseUUID(after)
			if !ok {
				return archive.BadID(after)
			}
			from = append(k.trace(trace, id), 0) // the first key after it
		}
		held := 0
		return db.each(ctx, txn, prefix, from, func(key, _ []byte) (bool, error) {
			// One record at least, however large it is: or a reader would never come further.
			if more = len(states) == limit || held > db.heldBytesMax; more {
				return false, nil
			}
			state, err := db.state(txn, k, uuid(key[len(key)-16:]))
			held += state.Weight()
			states = append(states, state.State)
			return true, err
		})
	})

	return states, more, err
}

// offListStep is how many keys one read of OffList looks at.
const offListStep = 1000

// OffList returns records that no list shows; see archive.Store.
func (db *DB) OffList(
	ctx context.Context, account string, which archive.OffList, after string, limit int,
) (states []archive.State, next string, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, "", err
	}

	// after is what follows the prefix in the last key, for orphans the id as text.
	prefix, place := k.table(tableSpan), []byte(after)
	if which == archive.Orphaned {
		prefix = k.table(tableOrphan)
		if id, ok := parseUUID(after); ok {
			place = id[:]
		} else if after != "" {
			return nil, "", archive.BadID(after)
		}
	}
	from := prefix
	if after != "" {
		from = append(append(bytes.Clone(prefix), place...), 0) // the first key after it
	}

	seen, held, more := 0, 0, false
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
			// One key beyond the page means that more follow.
			if more = len(states) == limit || seen == offListStep || held > db.heldBytesMax; more {
				return false, nil
			}
			seen++
			place = bytes.Clone(key[len(prefix):])
			if which == archive.TaggedSpans && !bytes.Equal(value, tagged) {
				return true, nil
			}

			id := place
			if which == archive.TaggedSpans {
				_, spanID := blocks.DecodePlace(place)
				id = spanID[:]
			}
			state, err := db.state(txn, k, uuid(id))
			held += state.Weight()
			states = append(states, state.State)
			return true, err
		})
	})
	switch {
	case !more:
	case which == archive.Orphaned:
		next = uuid(place).String()
	default:
		next = string(place)
	}

	return states, next, err
}
