package badgerdb

import (
	"context"
	"encoding/json"
	"errors"

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

// Search walks the account's list from its newest row; see archive.Store. Without a filter it reads the rows of the page
// only. With one it reads rows until the page is full and enough are counted.
func (db *DB) Search(ctx context.Context, account string, q archive.Query) (archive.Page, error) {
	k, err := keysOf(account)
	if err != nil {
		return archive.Page{}, err
	}
	w := walk{query: &q, skip: q.Offset}
	if q.After != nil {
		key, ok := k.rowAt(*q.After)
		if !ok {
			return archive.Page{}, badID(q.After.RequestID)
		}
		w.begin = append(key, 0) // the first key behind the cursor's row
	}
	err = db.view(func(txn *badger.Txn) error {
		if !q.Filtered() {
			count, err := loadCount(txn, k.count())
			if err != nil {
				return err
			}
			w.page.Total = int(count)
		}
		return db.walk(ctx, txn, k, &w)
	})
	if err != nil {
		return archive.Page{}, err
	}
	return w.page, nil
}

// walk is one pass over the rows of a list.
type walk struct {
	query *archive.Query
	begin []byte // rows before this key do not belong to the page; nil: all do
	skip  int    // rows to leave out before the page begins
	page  archive.Page
}

// checkEvery is how many rows a walk passes between looks at whether anybody still waits for it.
const checkEvery = 512

func (db *DB) walk(ctx context.Context, txn *badger.Txn, k keys, w *walk) error {
	prefix := k.table(tableTime)
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	start := prefix
	if w.begin != nil && !w.query.Filtered() {
		start = w.begin
	}
	it.Seek(start)
	for n := 0; it.Valid(); n++ {
		if n%checkEvery == 0 {
			if err := db.stopped(ctx); err != nil {
				return err
			}
		}
		key := it.Item().Key()
		inPage := w.begin == nil || string(key) >= string(w.begin)
		if !inPage && w.page.TotalIsLowerBound {
			it.Seek(w.begin) // no use in counting on
			continue
		}
		done, err := w.visit(it.Item(), inPage)
		if err != nil || done {
			return err
		}
		it.Next()
	}
	return nil
}

// visit takes one row and says whether the page and the total are complete.
func (w *walk) visit(item *badger.Item, inPage bool) (done bool, err error) {
	filtered := w.query.Filtered()
	if !filtered && w.skip > 0 {
		w.skip-- // its value need not be read
		return false, nil
	}
	if !filtered && len(w.page.Rows) == w.query.Limit {
		w.page.More = true
		return true, nil
	}
	var row wire.Row
	if err := item.Value(func(value []byte) error { return json.Unmarshal(value, &row) }); err != nil {
		return false, damaged(item.KeyCopy(nil), err)
	}
	if !w.query.Match(&row) {
		return false, nil
	}
	if filtered {
		w.count()
	}
	switch {
	case !inPage:
	case w.skip > 0:
		w.skip--
	case len(w.page.Rows) < w.query.Limit:
		w.page.Rows = append(w.page.Rows, row)
	default:
		w.page.More = true
	}
	return w.page.More && w.page.TotalIsLowerBound, nil
}

func (w *walk) count() {
	if w.page.Total == archive.TotalMax {
		w.page.TotalIsLowerBound = true
		return
	}
	w.page.Total++
}
