package badgerdb

import (
	"bytes"
	"context"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb/blocks"
)

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
		from = append(append(bytes.Clone(prefix), place...), 0) // the first key behind it
	}

	seen, held, more := 0, 0, false
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
			// One key beyond the page shows that there are more.
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

// OrphansOfAll returns the sum of the tallies of all accounts.
func (db *DB) OrphansOfAll(context.Context) (archive.Orphans, error) {
	var all archive.Orphans
	err := db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			counts, err := loadCounts(txn, k)
			all.Add(counts.Orphans)
			return err
		})
	})

	return all, err
}
