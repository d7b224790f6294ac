package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Delete deletes one record, or all with a metadata value, for good; see wire.Deletion.
// Deleting a record that does not exist succeeds, and blocks its later arrival. With an error it
// returns what was deleted until then, without Success.
func (a *Archive) Delete(ctx context.Context, id wire.Identity, d wire.Deletion) (wire.Deleted, error) {
	if err := checkAccount(id); err != nil {
		return wire.Deleted{}, err
	}

	invalid := func(reason string) (wire.Deleted, error) {
		return wire.Deleted{}, wire.Invalid(wire.FieldError{Field: "request_id", Reason: reason})
	}
	switch {
	case d.RequestID != "" && d.Key != "":
		return invalid("cannot be combined with metadata_key; send one of them")
	case d.RequestID == "" && d.Key == "":
		return invalid("is missing; send it, or metadata_key and metadata_value")
	case d.RequestID != "":
		var err error
		if d.RequestID, err = wire.ParseID(d.RequestID); err != nil {
			return invalid(err.Error())
		}
	// A moment in the future would delete what has not been written yet.
	case d.Before.IsZero() || d.Before.After(a.config.Now()):
		d.Before = a.config.Now().UTC()
	}

	deleted, err := a.config.Store.Delete(ctx, id.Account, d)
	deleted.Success = err == nil

	return deleted, err
}

// rewriteStep is how many records one transaction rewrites.
const rewriteStep = 200

// Rewrite calls change with every request of the account, newest first behind cursor (""
// for the first), in steps. After each step it calls progress with how many it has seen
// and changed, and a cursor that continues behind them, "" at the end. An error of
// progress ends it.
func (a *Archive) Rewrite(
	ctx context.Context, id wire.Identity, cursor string, change Change,
	progress func(seen, changed int, cursor string) error,
) error {
	if err := checkAccount(id); err != nil {
		return err
	}
	var after *query.Position
	if cursor != "" {
		p, ok := query.ParseCursor(cursor)
		if !ok {
			return errCursor("cursor of an earlier answer")
		}
		after = &p
	}

	seen, changed := 0, 0
	counted := func(accepted time.Time, r *Request, body func() ([]byte, error)) (bool, error) {
		seen++
		return change(accepted, r, body)
	}
	for {
		end, n, err := a.config.Store.Rewrite(ctx, id.Account, after, rewriteStep, counted)
		if err != nil {
			return err
		}

		// The step is durable by now, so a cursor that progress
		// keeps skips no record after a crash.
		changed += n
		next := ""
		if end != nil {
			next = end.Cursor()
		}
		if err := progress(seen, changed, next); err != nil || end == nil {
			return err
		}
		after = end
	}
}

// errCursor rejects a cursor that is not the one named.
func errCursor(wanted string) error {
	return wire.Invalid(wire.FieldError{
		Field:  "cursor",
		Reason: "is not valid; send the " + wanted + " unchanged",
	})
}

// RewritePage is Store.Rewrite for a store that rewrites a page of records in one
// transaction. rewrite fails with ErrHeavy for a page that weighs too much.
func RewritePage(
	ctx context.Context, s Store, account string, after *query.Position, limit int,
	rewrite func(page []query.Position) (changed int, err error),
) (end *query.Position, changed int, err error) {
	var page []query.Position
	collect := func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	}
	// Only positions are gathered here: rewrite calls the
	// store, which a scan must not do.
	_, err = s.Scan(ctx, account, query.Query{After: after}, rowcode.PlaceColumns, collect)
	if err != nil || len(page) == 0 {
		return nil, 0, err
	}

	err = Apart(page, func(part []query.Position) error {
		n, err := rewrite(part)
		changed += n
		return err
	})
	// A page of very long records may be too much for one
	// transaction: then its halves are.
	// A page that is not full is the last one.
	if len(page) == limit {
		end = &page[limit-1]
	}

	return end, changed, err
}

// Edited calls change on a record with these bodies, and keep for each body
// that it changed.
func (s *State) Edited(
	bodies map[string]json.RawMessage, change Edit, keep func(eventID string, body json.RawMessage) error,
) (changed bool, err error) {
	// The hash in the history tells which bodies change has
	// touched. Only these are written anew.
	hashes := make(map[string]string)
	for _, h := range s.History {
		hashes[h.ID] = h.Hash
	}

	if changed, err = change(s, bodies); err != nil || !changed {
		return false, err
	}
	for _, h := range s.History {
		if h.Hash == hashes[h.ID] {
			continue
		}
		if err := keep(h.ID, bodies[h.ID]); err != nil {
			return false, err
		}
	}

	return true, nil
}

// SelectorOf returns the Selectors of a single deletion by a metadata value.
func SelectorOf(d wire.Deletion) Selectors {
	hash := rowcode.HashValue(d.Key, d.Value)

	return func(key, value string) (time.Time, bool) {
		return d.Before, key == d.Key && rowcode.HashStored(key, value) == hash
	}
}
