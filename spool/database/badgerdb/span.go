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

// statesStep is how many keys one read of States looks at.
const statesStep = 1000

// States returns records of a part; see archive.Store.
func (db *DB) States(
	ctx context.Context, account string, of archive.Part, after string, limit int,
) (states []archive.State, next string, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, "", err
	}
	prefix := k.table(tableOrphan)
	switch {
	case of.Tagged:
		prefix = k.table(tableSpan)
	case of.Trace != (uuid{}):
		prefix = append(k.table(tableTrace), of.Trace[:]...)
	}

	// after is what follows the prefix in the last key: an id as text, or the place of a span.
	rest := []byte(after)
	if id, ok := parseUUID(after); ok {
		rest = id[:]
	}
	from := prefix
	if after != "" {
		from = append(append(bytes.Clone(prefix), rest...), 0) // the first key after it
	}

	seen, held, more := 0, 0, false
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
			// One key beyond the page means that more follow. There is one record at least,
			// however large it is: or a reader would never come further.
			if more = len(states) == limit || seen == statesStep || held > db.heldBytesMax; more {
				return false, nil
			}
			seen++
			rest = bytes.Clone(key[len(prefix):])
			if of.Tagged && !bytes.Equal(value, tagged) {
				return true, nil
			}

			id := rest
			if of.Tagged {
				_, spanID := blocks.DecodePlace(rest)
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
	case of.Tagged:
		next = string(rest)
	default:
		next = uuid(rest).String()
	}

	return states, next, err
}
