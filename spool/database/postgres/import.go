package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return db.small() }

// Import stores items of another database; see transfer.Mover. Items and mark are committed
// together, so an interrupted copy continues exactly behind them.
func (db *DB) Import(ctx context.Context, items []transfer.Item, mark keyed.Entry) error {
	f, err := db.newImport(ctx, items)
	if err != nil {
		return err
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		for i := range items {
			if err := queueItem(b, &items[i]); err != nil {
				return err
			}
		}
		if err := queueSmall(b, []keyed.Entry{mark}); err != nil {
			return err
		}
		if err := sendBatch(ctx, tx, b); err != nil {
			return err
		}

		return f.importRecords(ctx, tx, items)
	})
}

// queueItem queues what is not a record. What already exists stays as it is.
func queueItem(b *pgx.Batch, i *transfer.Item) error {
	key, err := accountKey(i.Of)
	if err != nil {
		return err
	}

	switch {
	case i.Tombstone != nil:
		id, ok := parseUUID(i.Tombstone.RequestID)
		if !ok {
			return archive.BadID(i.Tombstone.RequestID)
		}
		b.Queue(insertTombstone, key, id, i.Tombstone.At.UTC(), i.Tombstone.Unseen)

	case i.Forgotten != nil:
		b.Queue(`
			INSERT INTO deleted_values (account_id, hash, before) VALUES ($1, $2, $3)
			ON CONFLICT DO NOTHING`,
			key, slices.Clone(i.Forgotten.Hash[:]), nanosOf(i.Forgotten.Before))
	}

	return nil
}

// newImport prepares a folding of the records among items.
func (db *DB) newImport(ctx context.Context, items []transfer.Item) (*folding, error) {
	f := db.newFolding(0)
	for i := range items {
		if items[i].Record == nil {
			continue
		}
		key, err := accountKey(items[i].Of)
		if err == nil {
			_, err = f.Add(key, items[i].Record.State.RequestID)
		}
		if err != nil {
			return nil, err
		}
	}

	// Before the transaction, which would otherwise hold the locks on the parent tables.
	return f, db.tables.Ensure(ctx, f.weeks())
}

// importRecords writes records as they were elsewhere, except those that already exist.
func (f *folding) importRecords(ctx context.Context, tx pgx.Tx, items []transfer.Item) error {
	if len(f.Records) == 0 {
		return nil
	}
	if err := f.load(ctx, tx, false); err != nil {
		return err
	}

	for i := range items {
		whole := items[i].Record
		if whole == nil {
			continue
		}
		// Added by newImport already, which is why load has read it.
		key, _ := accountKey(items[i].Of) // checked by newImport
		r, err := f.Add(key, whole.State.RequestID)
		if err != nil {
			return err
		}
		var bodies []archive.PackedBody
		for id, body := range whole.Bodies {
			event, ok := parseUUID(id)
			if !ok {
				return archive.BadID(id)
			}
			packed := f.db.codec.Body(body)
			bodies = append(bodies, archive.PackedBody{Event: archive.UUID(event), Bytes: packed})
		}
		f.Bring(r, whole.State, bodies)
	}

	return f.write(ctx, tx)
}
