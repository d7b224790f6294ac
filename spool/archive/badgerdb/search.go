package badgerdb

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

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
				body, err = loadBody(txn, k, id, h)
			}
		}
		return err
	})
	if err != nil {
		return archive.State{}, nil, err
	}
	return state, body, nil
}

// loadBody reads the body of one event and proves that it is what was stored.
func loadBody(txn *badger.Txn, k keys, id uuid, h archive.Entry) ([]byte, error) {
	event, ok := parseUUID(h.ID)
	if !ok {
		return nil, badID(h.ID)
	}
	key := k.body(id, event)
	body, err := loadBytes(txn, key)
	if err == nil && (body == nil || archive.HashBody(body) != h.Hash) {
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
			count, err := loadCount(txn, k.count())
			if err != nil {
				return err
			}
			f.page.Total = int(count)
		}
		all := q
		if !q.Streams() && (q.Filtered() || q.Order.By != "") {
			all.After = nil // what comes before the cursor counts
		}
		f.page.Stopped, err = db.scan(ctx, txn, k, all, f.visit)
		return err
	})
	if err != nil {
		return archive.Page{}, err
	}
	return f.finish(), nil
}

// finder makes a page of the rows that match.
type finder struct {
	query  *archive.Query
	skip   int
	page   archive.Page
	sorted []wire.Row // of an order other than time
}

func (f *finder) visit(row *wire.Row) (more bool, err error) {
	q := f.query
	if q.Filtered() {
		if f.page.Total == archive.TotalMax && !q.Streams() {
			f.page.TotalIsLowerBound = true
		} else {
			f.page.Total++
		}
	}
	if q.After != nil && q.Order.Compare(q.Order.PositionOf(row), *q.After) <= 0 {
		return true, nil
	}
	switch {
	case q.Order.By != "":
		f.sorted = append(f.sorted, *row)
		return true, nil
	case f.skip > 0:
		f.skip--
	case len(f.page.Rows) < q.Limit:
		f.page.Rows = append(f.page.Rows, *row)
	default:
		f.page.More = true
	}
	return !f.page.More || q.Filtered() && !q.Streams() && !f.page.TotalIsLowerBound, nil
}

func (f *finder) finish() archive.Page {
	q := f.query
	if q.Order.By != "" {
		slices.SortFunc(f.sorted, func(a, b wire.Row) int { return q.Order.Compare(q.Order.PositionOf(&a), q.Order.PositionOf(&b)) })
		rows := f.sorted[min(q.Offset, len(f.sorted)):]
		f.page.More = len(rows) > q.Limit
		f.page.Rows = rows[:min(q.Limit, len(rows))]
	}
	if q.Streams() {
		f.page.TotalIsLowerBound = q.After != nil || f.page.More || f.page.Stopped != nil
	}
	return f.page
}

// Scan gives fn the rows that match; see archive.Store.
func (db *DB) Scan(ctx context.Context, account string, q archive.Query, want archive.Columns, fn func(row *wire.Row) (bool, error)) (stopped *archive.Position, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}
	err = db.view(func(txn *badger.Txn) error {
		stopped, err = db.scan(ctx, txn, k, q, fn)
		return err
	})
	return stopped, err
}

// checkEvery is how many rows a walk passes between looks at whether anybody still waits for it.
const checkEvery = 512

func (db *DB) scan(ctx context.Context, txn *badger.Txn, k keys, q archive.Query, fn func(row *wire.Row) (bool, error)) (stopped *archive.Position, err error) {
	var from []byte
	if q.After != nil {
		key, ok := k.rowAt(*q.After)
		if !ok {
			return nil, badID(q.After.RequestID)
		}
		from = append(key, 0) // the first key behind the cursor's row
	}
	deadline := time.Now().Add(q.Budget)
	err = db.each(ctx, txn, k.table(tableTime), from, func(key, value []byte) (bool, error) {
		var row wire.Row
		if err := decode(key, value, &row); err != nil {
			return false, err
		}
		s := archive.Subject{Row: &row, Body: func() ([]byte, error) { return requestBody(txn, k, row.RequestID) }}
		if match := q.Match(&s); !match || s.Err != nil {
			if q.Budget > 0 && time.Now().After(deadline) {
				p := archive.PositionOf(&row)
				stopped = &p
				return false, s.Err
			}
			return true, s.Err
		}
		return fn(&row)
	})
	return stopped, err
}

// requestBody reads the body of a record's request.
func requestBody(txn *badger.Txn, k keys, requestID string) ([]byte, error) {
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
			return loadBody(txn, k, id, h)
		}
	}
	return nil, nil
}
