package archive

import (
	"context"
	"encoding/json"
	"time"

	"promptspool/api/wire"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Change may change what is derived from a request, and reports whether it did.
// accepted is the request's order time. body returns the request as it was sent, valid
// only until Change returns.
type Change func(accepted time.Time, r *Request, body func() ([]byte, error)) (changed bool, err error)

// Rewrite changes what is derived from the requests of up to limit records, newest first
// following after. It is durable when it returns. change must be quick and must not call the
// Store. Rewrite returns where it ended, nil at the end, and how many changed; on an error of
// these records, the end that it would have reached. Events that arrive meanwhile are not lost.
func Rewrite(
	ctx context.Context, s Store, account string, after *query.Position, limit int, change Change,
) (end *query.Position, changed int, err error) {
	var page []query.Position
	collect := func(row *wire.Row) (bool, error) {
		page = append(page, query.PositionOf(row))
		return len(page) < limit, nil
	}
	_, err = s.Scan(ctx, account, query.Query{After: after}, rowcode.PlaceColumns, collect)
	if err != nil || len(page) == 0 {
		return nil, 0, err
	}

	// A page of very long records may be too much for one transaction: then its halves are.
	ids := make([]string, len(page))
	for i, p := range page {
		ids[i] = p.RequestID
	}
	err = Apart(ids, func(part []string) error {
		n := 0
		err := s.Change(ctx, account, part, false, func(g *Group, reader Reader) (err error) {
			n, err = g.rewrite(reader, change)
			return err
		})
		if err == nil {
			changed += n
		}
		return err
	})
	// A page that is not full is the last one.
	if len(page) == limit {
		end = &page[limit-1]
	}

	return end, changed, err
}

// rewriteBytesMax bounds the states and bodies of the records that one transaction rewrites,
// unless one alone has more: all other writers wait for it.
const rewriteBytesMax = 4 << 20

// rewrite calls change with the group's requests, and returns how many it changed.
func (g *Group) rewrite(reader Reader, change Change) (changed int, err error) {
	// Before change is called: it may count, and must not see a record twice.
	bytes := 0
	for _, r := range g.Records {
		bytes += r.State.Weight()
		if request := r.requestEntry(); len(request) > 0 {
			bytes += request[0].Bytes
		}
	}
	if bytes > rewriteBytesMax && len(g.Records) > 1 {
		return 0, ErrHeavy
	}

	for _, r := range g.Records {
		if !r.State.Listed() {
			continue // deleted since the page was read
		}

		row, _ := r.State.Row()
		before := rowcode.Encode(&row)
		// Read only if change asks for it: most changes need the state alone.
		body := func() ([]byte, error) {
			bodies, err := reader.Bodies(r, r.requestEntry())
			return bodies[r.State.Request.ID], err
		}
		if r.Changed, err = change(r.State.Request.At, &r.State.Request.Value, body); err != nil {
			return 0, err
		}

		// Excerpts are not in the row, which then stays where it is.
		r.SameRow = r.isSameRow(before)
		if r.Changed {
			changed++
		}
	}

	return changed, nil
}

// requestEntry returns the entry of the record's request in the history, if it is there.
func (r *Record) requestEntry() []Entry {
	if r.State.Listed() {
		for i, h := range r.State.History {
			if h.ID == r.State.Request.ID {
				return r.State.History[i : i+1]
			}
		}
	}
	return nil
}

// EditFunc may change a record and the bodies kept of its events, by event id. It reports
// whether it did.
type EditFunc func(s *State, bodies map[string]json.RawMessage) (changed bool, err error)

// Edit calls change with these records, orphans included, and stores what it changed. It is
// durable when it returns, with everything that derives from the records. It uses one
// transaction, or several as Apply does. Of the bodies it stores those whose hash in the
// history changed. The old content is erased as deleted records are. Records that do not exist
// are left out. change may be called again for the same record.
func Edit(ctx context.Context, s Store, account string, ids []string, change EditFunc) (changed int, err error) {
	err = Apart(ids, func(part []string) error {
		n := 0
		err := s.Change(ctx, account, part, false, func(g *Group, reader Reader) (err error) {
			n, err = g.edit(reader, change)
			return err
		})
		if err == nil {
			changed += n
		}
		return err
	})

	return changed, err
}

// edit lets change edit the group's records, and returns how many it changed.
func (g *Group) edit(reader Reader, change EditFunc) (changed int, err error) {
	for _, r := range g.Records {
		if len(r.State.History) == 0 {
			continue // deleted since
		}

		// All of them: an edit may concern an event that no longer shows.
		bodies, err := reader.Bodies(r, r.State.History)
		if err != nil {
			return 0, err
		}
		if r.Changed, err = r.edit(bodies, change); err != nil {
			return 0, err
		}
		if !r.Changed {
			continue
		}

		// Its row may have come or gone, and shows other values.
		changed++
		r.Erase, r.Hidden = true, r.State.Hidden()
		g.Accounts[r.Account].Orphans.Add(r.State.Waiting().Minus(r.Before.Waiting))
	}

	return changed, nil
}

// edit calls change on the record with these bodies, and keeps each body that it changed.
func (r *Record) edit(bodies map[string]json.RawMessage, change EditFunc) (changed bool, err error) {
	// The hash in the history shows which bodies change has touched. Only these are
	// written again.
	hashes := make(map[string]string)
	for _, h := range r.State.History {
		hashes[h.ID] = h.Hash
	}

	if changed, err = change(&r.State.State, bodies); err != nil || !changed {
		return false, err
	}
	for _, h := range r.State.History {
		if h.Hash == hashes[h.ID] {
			continue
		}
		event, ok := ParseUUID(h.ID)
		if !ok {
			return false, BadID(h.ID)
		}
		if r.Replaced == nil {
			r.Replaced = make(map[UUID]json.RawMessage)
		}
		r.Replaced[event] = bodies[h.ID]
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
