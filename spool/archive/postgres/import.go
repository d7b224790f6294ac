package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"promptspool/spool/archive"
	"promptspool/spool/archive/accounts"
	"promptspool/spool/archive/transfer"
)

// Import stores items of another database; see transfer.Mover. Items and place are committed
// together, so an interrupted copy continues exactly behind them.
func (db *DB) Import(ctx context.Context, items []transfer.Item, place string) error {
	f, err := db.newImport(ctx, items)
	if err != nil {
		return err
	}

	return db.pool.Change(ctx, true, func(tx pgx.Tx) error {
		// New with each attempt: an earlier one may have queued half of it.
		var a accountTx
		b := &a.writes
		for i := range items {
			if err := accounts.Import(&a, &items[i]); err != nil {
				return err
			}
			if err := queueItem(b, &items[i]); err != nil {
				return err
			}
		}
		// There is one row: its key allows no second.
		b.Queue(`
			INSERT INTO copying (one, place) VALUES (true, $1)
			ON CONFLICT (one) DO UPDATE SET place = EXCLUDED.place`, place)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}

		return f.importRecords(ctx, tx, items)
	})
}

// queueItem queues what belongs to an account and is not a record. What already exists stays
// as it is, or is replaced by the same.
func queueItem(b *pgx.Batch, i *transfer.Item) error {
	if i.Of == "" {
		return nil
	}
	key, err := accountKey(i.Of)
	if err != nil {
		return err
	}

	var document string
	switch {
	case i.Audit != nil:
		document, err = encode(i.Audit)
		b.Queue(insertAudit, i.Of, i.Audit.ID, document)

	case i.Sidecar != nil:
		document, err = encode(i.Sidecar.Heartbeat)
		b.Queue(insertSidecar, i.Of, i.Sidecar.ID, document, i.Sidecar.LastSeen)

	case i.Registry != nil:
		// One that exists stays: it may have given out higher numbers since.
		b.Queue(`
			INSERT INTO registries (account_id, template, version, revision) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`,
			i.Of, i.Registry.Template, i.Registry.Version, int64(i.Registry.Revision))

	case i.Template != nil:
		document, err = encode(i.Template)
		b.Queue(insertTemplate, i.Of, i.Template.Name, i.Template.ID, int64(i.Template.Revision), document)

	case i.Version != nil:
		document, err = encode(i.Version)
		b.Queue(insertVersion+` ON CONFLICT DO NOTHING`, i.Of, i.Version.TemplateID, i.Version.Number, document)

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

	return err
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
