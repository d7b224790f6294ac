package badgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// Record returns a state and the body of its request; see archive.Store.
func (db *DB) Record(ctx context.Context, account, requestID string) (archive.State, json.RawMessage, error) {
	var state archive.State
	var bodies map[string]json.RawMessage
	k, err := keysOf(account)
	if err != nil {
		return state, nil, err
	}
	id, ok := parseUUID(requestID)
	if !ok {
		return state, nil, wire.Errorf(wire.CodeNotFound, "There is no request %.40q.", requestID)
	}
	err = db.view(func(txn *badger.Txn) (err error) { state, bodies, err = db.whole(txn, k, id); return err })
	if err == nil && len(state.History) == 0 {
		err = wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
	}
	if err != nil {
		return archive.State{}, nil, err
	}
	if state.Orphan() {
		return state, nil, nil
	}
	return state, bodies[state.Request.ID], nil
}

// whole reads a state with long values restored, and the bodies that this takes, that of the request among them. A record
// that there is not has no history.
func (db *DB) whole(txn *badger.Txn, k keys, id uuid) (state archive.State, bodies map[string]json.RawMessage, err error) {
	stored, err := db.state(txn, k, id)
	if err != nil || len(stored.History) == 0 {
		return archive.State{}, nil, err
	}
	state = stored.State
	wanted := state.Shown()
	bodies = make(map[string]json.RawMessage)
	for _, h := range state.History {
		if h.Hash == "" || !slices.Contains(wanted, h.ID) {
			continue
		}
		if bodies[h.ID], err = db.loadBody(txn, k, id, h); err != nil {
			return archive.State{}, nil, err
		}
	}
	state.Restore(bodies)
	return state, bodies, nil
}

// metadata reads a record's, with long values whole.
func (db *DB) metadata(txn *badger.Txn, k keys, requestID string) (map[string]string, error) {
	id, ok := parseUUID(requestID)
	if !ok {
		return nil, badID(requestID)
	}
	state, _, err := db.whole(txn, k, id)
	return state.Whole(), err
}

// Bodies returns a state and the bodies of its events; see archive.Store.
func (db *DB) Bodies(ctx context.Context, account, requestID string) (archive.State, map[string]json.RawMessage, error) {
	var state archive.State
	k, err := keysOf(account)
	if err != nil {
		return state, nil, err
	}
	id, ok := parseUUID(requestID)
	if !ok {
		return state, nil, badID(requestID)
	}
	bodies := map[string]json.RawMessage{}
	err = db.view(func(txn *badger.Txn) error {
		stored, err := db.state(txn, k, id)
		state = stored.State
		if err == nil && len(state.History) == 0 {
			err = wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
		}
		for _, h := range state.History {
			if err != nil || h.Hash == "" {
				continue
			}
			bodies[h.ID], err = db.loadBody(txn, k, id, h)
		}
		return err
	})
	return state, bodies, err
}

// loadBody reads the body of one event and proves that it is what was stored.
func (db *DB) loadBody(txn *badger.Txn, k keys, id uuid, h archive.Entry) ([]byte, error) {
	event, ok := parseUUID(h.ID)
	if !ok {
		return nil, badID(h.ID)
	}
	key := k.body(id, event)
	body, err := db.codec.read(txn, bodyVersion, key, nil)
	if err == nil && archive.HashBody(body) != h.Hash {
		err = damaged(key, errors.New("the body is not the one that was stored"))
	}
	return body, err
}

// Search returns a page; see archive.Store.
func (db *DB) Search(ctx context.Context, account string, q query.Query) (query.Page, error) {
	k, err := keysOf(account)
	if err != nil {
		return query.Page{}, err
	}
	f := query.NewFinder(&q)
	page := query.Page{}
	err = db.view(func(txn *badger.Txn) error {
		if !q.Filtered() {
			count, err := loadTally(txn, k)
			if err != nil {
				return err
			}
			f.Total(int(count.records))
		}
		all := q
		if !q.Streams() && (q.Filtered() || q.Order.By != "") {
			all.After = nil // what comes before the cursor counts
		}
		s, err := db.newScan(ctx, txn, k, &all)
		if err != nil {
			return err
		}
		s.visit = func(m *match) (bool, error) { return f.Visit(m.fill) }
		if err := s.run(); err != nil {
			return err
		}
		page, err = f.Finish(s.stopped, func(requestID string) (row wire.Row, err error) {
			id, _ := parseUUID(requestID)
			state, err := db.state(txn, k, id)
			row, _ = state.Row()
			return row, err
		})
		return err
	})
	if err != nil {
		return query.Page{}, err
	}
	return page, nil
}

// Scan gives fn the rows that match; see archive.Store.
func (db *DB) Scan(ctx context.Context, account string, q query.Query, want rowcode.Columns, fn func(row *wire.Row) (bool, error)) (stopped *query.Position, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}
	err = db.view(func(txn *badger.Txn) error {
		stopped, err = db.scan(ctx, txn, k, &q, want, fn)
		return err
	})
	return stopped, err
}

// checkEvery is how many rows a walk passes between looks at whether anybody still waits for it.
const checkEvery = 512

func (db *DB) scan(ctx context.Context, txn *badger.Txn, k keys, q *query.Query, want rowcode.Columns, fn func(row *wire.Row) (bool, error)) (stopped *query.Position, err error) {
	s, err := db.newScan(ctx, txn, k, q)
	if err != nil {
		return nil, err
	}
	s.visit = func(m *match) (bool, error) {
		row, err := m.fill(want)
		if err != nil {
			return false, err
		}
		return fn(row)
	}
	err = s.run()
	return s.stopped, err
}

// requestBody reads the body of a record's request.
func (db *DB) requestBody(txn *badger.Txn, k keys, requestID string) ([]byte, error) {
	id, ok := parseUUID(requestID)
	if !ok {
		return nil, badID(requestID)
	}
	state, err := db.state(txn, k, id)
	if err != nil || state.Orphan() {
		return nil, err
	}
	for _, h := range state.History {
		if h.ID == state.Request.ID {
			return db.loadBody(txn, k, id, h)
		}
	}
	return nil, nil
}
