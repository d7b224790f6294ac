package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// RewritePage is Store.Rewrite of a store that can rewrite a page of records in one transaction, as long as they weigh
// little enough; else it fails with ErrHeavy.
func RewritePage(ctx context.Context, s Store, account string, after *query.Position, limit int,
	rewrite func(page []query.Position) (changed int, err error),
) (end *query.Position, changed int, err error) {
	var page []query.Position
	_, err = s.Scan(ctx, account, query.Query{After: after}, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	})
	if err != nil || len(page) == 0 {
		return nil, 0, err
	}

	err = Apart(page, func(part []query.Position) error {
		n, err := rewrite(part)
		changed += n
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	if len(page) == limit {
		end = &page[limit-1]
	}

	return end, changed, nil
}

// Edited lets change work on a record with these bodies, and gives keep those that it changed.
func (s *State) Edited(
	bodies map[string]json.RawMessage, change Edit, keep func(eventID string, body json.RawMessage) error,
) (changed bool, err error) {
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

// SelectorOf is a deletion by a metadata value, as the only one.
func SelectorOf(d wire.Deletion) Selectors {
	hash := rowcode.HashValue(d.Key, d.Value)
	return func(key, value string) (time.Time, bool) {
		return d.Before, key == d.Key && rowcode.HashStored(key, value) == hash
	}
}
