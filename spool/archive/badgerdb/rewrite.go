package badgerdb

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Rewrite changes what is derived from requests; see archive.Store.
func (db *DB) Rewrite(
	ctx context.Context, account string, after *query.Position, limit int, change archive.Change,
) (end *query.Position, changed int, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, 0, err
	}

	return archive.RewritePage(ctx, db, account, after, limit, func(page []query.Position) (int, error) {
		return db.rewrite(ctx, k, page, change)
	})
}

// rewriteBytesMax bounds the states and bodies of the records that one transaction rewrites,
// unless one alone has more: all other writers wait for it.
const rewriteBytesMax = 4 << 20

// rewrite rewrites some records in one transaction.
func (db *DB) rewrite(
	ctx context.Context, k keys, page []query.Position, change archive.Change,
) (changed int, err error) {
	listed := 0
	err = db.commit.doMany(ctx, 0, len(page), func(txn *badger.Txn) ([]write, error) {
		// The records are read here, not when the page was: events may have come since.
		changed = 0

		f := db.newFolding(txn, k)
		size := 0
		for _, p := range page {
			r, err := f.record(p.RequestID)
			if err != nil {
				return nil, err
			}

			// Before change is called: it may count, and must not see a record twice.
			if size += rewriteBytes(r); size > rewriteBytesMax && len(f.order) > 1 {
				return nil, archive.ErrHeavy
			}
		}

		for _, r := range f.order {
			// It has no request yet that anything could derive from.
			if !r.state.Listed() {
				continue
			}

			row, _ := r.state.Row()
			before := rowcode.Encode(&row)
			body := func() ([]byte, error) { return db.requestBody(txn, k, r.state.RequestID) }
			var err error
			if r.changed, err = change(r.state.Request.At, &r.state.Request.Value, body); err != nil {
				return nil, err
			}

			// Excerpts are not in the row, which then stays in its block.
			row, _ = r.state.Row()
			r.sameRow = bytes.Equal(before, rowcode.Encode(&row))

			if r.changed {
				changed++
			}
		}

		err := f.finish()
		listed = f.listed
		return f.writes, err
	})
	if err != nil {
		return 0, err
	}

	db.rowsWritten(k, listed)
	return changed, nil
}

// rewriteBytes returns about how many bytes are read to rewrite a record.
func rewriteBytes(r *record) int {
	n := r.state.Weight()
	if !r.state.Listed() {
		return n
	}

	for _, h := range r.state.History {
		if h.ID == r.state.Request.ID {
			n += h.Bytes
		}
	}

	return n
}

// Edit changes whole records; see archive.Store.
func (db *DB) Edit(ctx context.Context, account string, ids []string, change archive.Edit) (changed int, err error) {
	k, err := keysOf(account)
	if err != nil {
		return 0, err
	}

	db.askErase() // before the first is changed and after the last, as in Delete
	err = archive.Apart(ids, func(part []string) error {
		n, err := db.editTogether(ctx, k, part, change)
		changed += n
		return err
	})

	db.askErase()
	return changed, err
}

// editTogether edits records in one transaction.
func (db *DB) editTogether(ctx context.Context, k keys, ids []string, change archive.Edit) (changed int, err error) {
	listed := 0
	err = db.commit.doMany(ctx, 0, len(ids), func(txn *badger.Txn) ([]write, error) {
		changed = 0
		f := db.newFolding(txn, k)

		for _, id := range ids {
			r, err := f.record(id)
			if err != nil {
				return nil, err
			}

			if len(r.state.History) == 0 {
				continue // deleted since
			}

			if err := f.edit(r, change); err != nil {
				return nil, err
			}
			if r.changed {
				changed++
			}
		}

		// Without a change nothing is written, and nothing has to be erased.
		if err := f.finish(); err != nil || changed == 0 {
			return nil, err
		}

		listed = f.listed

		// The old bodies may still be in the files.
		return append(f.writes, write{eraseKey, appendTime(nil, db.now())}), nil
	})
	if err != nil {
		return 0, err
	}

	db.rowsWritten(k, listed)
	return changed, nil
}

// edit lets change edit a record, and stores the bodies that it changed.
func (f *folding) edit(r *record, change archive.Edit) error {
	bodies, err := f.db.bodies(f.txn, f.keys, r.id, &r.state.State, false)
	if err != nil {
		return err
	}

	r.changed, err = r.state.Edited(bodies, change, func(eventID string, body json.RawMessage) error {
		event, ok := parseUUID(eventID)
		if !ok {
			return badID(eventID)
		}

		// Under the same key: the old body stays in the files until they are erased.
		f.writes = append(f.writes, write{f.keys.body(r.id, event), f.db.codec.packBody(body)})
		return nil
	})
	if err != nil || !r.changed {
		return err
	}

	// Its row may have come or gone, and shows other values.
	f.hide(r, r.state.Hidden())

	// After the edit the record may count differently in the tally of orphans.
	if now := r.state.Waiting(); now != r.waiting {
		if err := f.loadOrphans(); err != nil {
			return err
		}
		f.orphans.Add(now.Minus(r.waiting))
		r.waiting = now
	}
	return nil
}
