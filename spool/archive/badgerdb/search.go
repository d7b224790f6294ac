package badgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
)

// Record returns a state and the body of its request; see archive.Store.
func (db *DB) Record(ctx context.Context, account, requestID string) (archive.State, json.RawMessage, error) {
	var state archive.State
	var body []byte
	k, err := keysOf(account)
	if err != nil {
		return state, nil, err
	}
	id, ok := parseUUID(requestID)
	if !ok {
		return state, nil, wire.Errorf(wire.CodeNotFound, "There is no request %.40q.", requestID)
	}
	err = db.view(func(txn *badger.Txn) error {
		found, err := load(txn, k.record(id), &state)
		if err == nil && !found {
			err = wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
		}
		if err != nil || state.Orphan() {
			return err
		}
		for _, h := range state.History {
			if h.ID == state.Request.ID {
				body, err = db.loadBody(txn, k, id, h)
			}
		}
		return err
	})
	if err != nil {
		return archive.State{}, nil, err
	}
	return state, body, nil
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
		found, err := load(txn, k.record(id), &state)
		if err == nil && !found {
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
func (db *DB) Search(ctx context.Context, account string, q archive.Query) (archive.Page, error) {
	k, err := keysOf(account)
	if err != nil {
		return archive.Page{}, err
	}
	f := finder{query: &q, skip: q.Offset}
	err = db.view(func(txn *badger.Txn) error {
		if !q.Filtered() {
			count, err := loadTally(txn, k)
			if err != nil {
				return err
			}
			f.page.Total = int(count.records)
		}
		all := q
		if !q.Streams() && (q.Filtered() || q.Order.By != "") {
			all.After = nil // what comes before the cursor counts
		}
		s, err := db.newScan(ctx, txn, k, &all)
		if err != nil {
			return err
		}
		s.visit = f.visit
		err = s.run()
		f.page.Stopped = s.stopped
		if err != nil {
			return err
		}
		return f.finish(txn, k)
	})
	if err != nil {
		return archive.Page{}, err
	}
	return f.page, nil
}

// finder makes a page of the rows that match.
type finder struct {
	query  *archive.Query
	skip   int
	page   archive.Page
	behind bool    // the cursor
	sorted topRows // of an order other than time
}

const placeColumns = 1<<archive.ColumnID | 1<<archive.ColumnTime

func (f *finder) visit(m *match) (more bool, err error) {
	q := f.query
	if q.Filtered() {
		if f.page.Total == archive.TotalMax && !q.Streams() {
			f.page.TotalIsLowerBound = true
		} else {
			f.page.Total++
		}
	}
	if q.Order.By != "" {
		return true, f.sort(m)
	}
	if q.After != nil && !f.behind {
		row, err := m.fill(placeColumns)
		if err != nil || q.Order.Compare(archive.PositionOf(row), *q.After) <= 0 {
			return true, err
		}
		f.behind = true
	}
	switch {
	case f.skip > 0:
		f.skip--
	case len(f.page.Rows) < q.Limit:
		row, err := m.fill(archive.AllColumns)
		if err != nil {
			return false, err
		}
		f.page.Rows = append(f.page.Rows, archive.CloneRow(row))
	default:
		f.page.More = true
	}
	return !f.page.More || q.Filtered() && !q.Streams() && !f.page.TotalIsLowerBound, nil
}

// sort puts a row among the best so far.
func (f *finder) sort(m *match) error {
	q := f.query
	row, err := m.fill(placeColumns | archive.ColumnsOf(q.Order.Column()))
	if err != nil {
		return err
	}
	p := q.Order.PositionOf(row)
	if q.After != nil && q.Order.Compare(p, *q.After) <= 0 || !f.sorted.wants(q, p) {
		return nil
	}
	f.sorted.add(q, p)
	return nil
}

// finish puts the page of an order together.
func (f *finder) finish(txn *badger.Txn, k keys) error {
	q := f.query
	if q.Streams() {
		f.page.TotalIsLowerBound = q.After != nil || f.page.More || f.page.Stopped != nil
	}
	if q.Order.By == "" {
		return nil
	}
	f.sorted.trim(q)
	places := f.sorted.places[min(q.Offset, len(f.sorted.places)):]
	f.page.More = len(places) > q.Limit
	for _, p := range places[:min(q.Limit, len(places))] {
		id, _ := parseUUID(p.RequestID)
		var state archive.State
		if _, err := load(txn, k.record(id), &state); err != nil {
			return err
		}
		row, _ := state.Row()
		f.page.Rows = append(f.page.Rows, row)
	}
	return nil
}

// topRows are where the first rows of an order stand, as many as a page and those before it need.
type topRows struct {
	places []archive.Position
	last   *archive.Position // of them, once there are enough
}

func (t *topRows) wants(q *archive.Query, p archive.Position) bool {
	return t.last == nil || q.Order.Compare(p, *t.last) < 0
}

func (t *topRows) add(q *archive.Query, p archive.Position) {
	p.Value.Text = strings.Clone(p.Value.Text)
	if t.places = append(t.places, p); len(t.places) >= 2*(q.Offset+q.Limit+1) {
		t.trim(q)
	}
}

// trim sorts the places and lets go of those that are too many.
func (t *topRows) trim(q *archive.Query) {
	slices.SortFunc(t.places, q.Order.Compare)
	if most := q.Offset + q.Limit + 1; len(t.places) >= most {
		t.places = t.places[:most]
		last := t.places[most-1]
		t.last = &last
	}
}

// Scan gives fn the rows that match; see archive.Store.
func (db *DB) Scan(ctx context.Context, account string, q archive.Query, want archive.Columns, fn func(row *wire.Row) (bool, error)) (stopped *archive.Position, err error) {
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

func (db *DB) scan(ctx context.Context, txn *badger.Txn, k keys, q *archive.Query, want archive.Columns, fn func(row *wire.Row) (bool, error)) (stopped *archive.Position, err error) {
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
	var state archive.State
	if _, err := load(txn, k.record(id), &state); err != nil || state.Orphan() {
		return nil, err
	}
	for _, h := range state.History {
		if h.ID == state.Request.ID {
			return db.loadBody(txn, k, id, h)
		}
	}
	return nil, nil
}
