package badgerdb

import (
	"context"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Apply folds events in one transaction; see archive.Store.
func (db *DB) Apply(ctx context.Context, account string, events []archive.Event) (results []wire.Result, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}

	// A batch that is too heavy for one transaction is folded in parts.

	err = archive.Apart(events, func(part []archive.Event) error {
		more, err := db.apply(ctx, k, part)
		results = append(results, more...)
		return err
	})
	if err != nil {
		return nil, err
	}

	return results, nil
}

// apply folds events in one transaction, and fails with archive.ErrHeavy if their records
// weigh too much for one.
func (db *DB) apply(ctx context.Context, k keys, events []archive.Event) (results []wire.Result, err error) {
	packed, bytes := db.packBodies(events)
	err = db.change(ctx, k, bytes, len(events), func(f *folding) error {
		for i := range events {
			if err := f.load(events[i].RequestID); err != nil {
				return err
			}
			result, err := f.group.Fold(f.account, &events[i], packed[i])
			if err != nil {
				return err
			}
			results = append(results, result)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	return results, nil
}

// packBodies compresses the bodies that are kept, outside the committer, so that no other
// write waits for it.
func (db *DB) packBodies(events []archive.Event) (packed [][]byte, bytes int) {
	packed = make([][]byte, len(events))
	for i := range events {
		bytes += len(events[i].Body)
		if events[i].Hash != "" {
			packed[i] = db.codec.Body(events[i].Body)
		}
	}
	return packed, bytes
}

// rowsWritten packs an account's rows when there are enough. A writer of many rows waits
// until that is done; a writer of few does not wait for what others wrote. Packing only
// rearranges what is already stored, so its failure harms nobody.
func (db *DB) rowsWritten(k keys, rows int) {
	if !db.due(k, rows) {
		return
	}
	// Whoever writes that much waits for its packing, or rows would pile up faster than
	// they are packed.
	if rows >= db.packing.every/packedByFew {
		db.packNow(k)
		return
	}

	db.packMu.Lock()
	defer db.packMu.Unlock()

	switch {
	case db.packEnded: // the database is being closed
	case db.packBeside:
		db.unpacked[k] = db.packing.every // the next write tries again
	default:
		db.packBeside = true
		db.packers.Go(func() {
			db.packNow(k)

			db.packMu.Lock()
			db.packBeside = false
			db.packMu.Unlock()
		})
	}
}

// packedByFew sets what counts as few rows: less than this fraction of packing.every.
const packedByFew = 16

// packNow packs an account's rows, and logs a failure that the caller need not know.
func (db *DB) packNow(k keys) {
	if err := db.pack(context.Background(), k); err != nil && !wire.IsCode(err, wire.CodeUnavailable) {
		db.logger.Error("rows could not be packed into blocks; searches still work, but slower", "error", err)
	}
}
