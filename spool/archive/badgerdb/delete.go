package badgerdb

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rowcode"
)

// deleteStep is how many records one transaction deletes.
const deleteStep = 100

// Delete deletes records and leaves tombstones; see archive.Store.
func (db *DB) Delete(ctx context.Context, account string, d wire.Deletion) (wire.Deleted, error) {
	k, err := keysOf(account)
	if err != nil {
		return wire.Deleted{}, err
	}
	db.askErase() // before the first is gone and after the last, whenever an erasing may end meanwhile
	var sum wire.Deleted
	if d.RequestID != "" {
		sum, err = db.deleteRecords(ctx, k, []string{d.RequestID}, nil, true)
	} else {
		sum, err = db.deleteValue(ctx, account, k, d)
	}
	db.askErase()
	sum.GoneBy = db.now().UTC().Add(eraseWithin)
	return sum, err
}

func (db *DB) deleteValue(ctx context.Context, account string, k keys, d wire.Deletion) (wire.Deleted, error) {
	// The tombstone comes first, so that nothing slips in behind the walk.
	buried := 0
	if err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		f := db.newFolding(txn, k)
		err := f.forget(d)
		buried = f.buried
		return f.writes, err
	}); err != nil {
		return wire.Deleted{}, err
	}
	db.tombstones.Add(int64(buried))
	which := func(s *archive.State) bool { return s.Deleted(archive.SelectorOf(d)) }
	sum, err := db.deleteOrphans(ctx, k, which, true)
	if err != nil {
		return sum, err
	}
	hidden, err := db.hiddenIDs(ctx, k, d)
	if err != nil {
		return sum, err
	}
	for step := range slices.Chunk(hidden, deleteStep) {
		part, err := db.deleteRecords(ctx, k, step, which, true)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
		if err != nil {
			return sum, err
		}
	}
	shown, err := db.deleteShown(ctx, account, k, d, which)
	sum.Records, sum.Events = sum.Records+shown.Records, sum.Events+shown.Events

	return sum, err
}

// deleteShown deletes the records whose rows show a deleted value, as which says.
func (db *DB) deleteShown(ctx context.Context, account string, k keys, d wire.Deletion, which func(*archive.State) bool) (sum wire.Deleted, err error) {
	value, err := json.Marshal(d.Value)
	if err != nil {
		return sum, err
	}
	q, err := query.Compile(wire.Search{FilterGroup: &wire.Filter{Field: "metadata", NestedKey: d.Key, Operator: "is", Value: value}})
	for err == nil {
		var ids []string
		var last query.Position
		if _, err := db.Scan(ctx, account, q, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
			last = query.PositionOf(row)
			ids = append(ids, last.RequestID)
			return len(ids) < deleteStep, nil
		}); err != nil {
			return sum, err
		}
		part, err := db.deleteRecords(ctx, k, ids, which, true)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
		if err != nil || len(ids) < deleteStep {
			return sum, err
		}
		q.After = &last
	}

	return sum, err
}

// hiddenIDs are the records that have a deleted value and do not show it.
func (db *DB) hiddenIDs(ctx context.Context, k keys, d wire.Deletion) (ids []string, err error) {
	err = db.view(func(txn *badger.Txn) error {
		hash := rowcode.HashValue(d.Key, d.Value)
		return db.each(ctx, txn, append(k.table(tableHidden), hash[:]...), nil, func(key, _ []byte) (bool, error) {
			ids = append(ids, uuid(key[len(key)-16:]).String())
			return true, nil
		})
	})

	return ids, err
}

// deleteOrphans deletes records whose request has not come, as which says.
func (db *DB) deleteOrphans(ctx context.Context, k keys, which func(*archive.State) bool, tombstones bool) (sum wire.Deleted, err error) {
	var ids []string
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, k.table(tableOrphan), nil, func(key, _ []byte) (bool, error) {
			id := uuid(key[len(key)-16:])
			state, err := db.state(txn, k, id)
			if err == nil && len(state.History) > 0 && which(&state.State) {
				ids = append(ids, id.String())
			}
			return true, err
		})
	})
	for step := range slices.Chunk(ids, deleteStep) {
		if err != nil {
			break
		}
		var part wire.Deleted
		part, err = db.deleteRecords(ctx, k, step, which, tombstones)
		sum.Records, sum.Events = sum.Records+part.Records, sum.Events+part.Events
	}
	return sum, err
}

// deleteRecords deletes records by their ids, those of which says that it shall, or all if it is nil. With tombstones they
// are kept out for ever.
func (db *DB) deleteRecords(ctx context.Context, k keys, ids []string, which func(*archive.State) bool, tombstones bool) (sum wire.Deleted, err error) {
	err = archive.Apart(ids, func(part []string) error {
		deleted, err := db.deleteTogether(ctx, k, part, which, tombstones)
		sum.Records, sum.Events = sum.Records+deleted.Records, sum.Events+deleted.Events
		return err
	})
	return sum, err
}

// deleteTogether is deleteRecords in one transaction.
func (db *DB) deleteTogether(
	ctx context.Context, k keys, ids []string, which func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
	listed, buried, unseen := 0, 0, 0
	err = db.commit.doMany(ctx, 0, len(ids), func(txn *badger.Txn) ([]write, error) {
		sum = wire.Deleted{}
		f := db.newFolding(txn, k)
		for _, id := range ids {
			r, err := f.record(id)
			if err != nil {
				return nil, err
			}
			if which != nil && (len(r.state.History) == 0 || !which(&r.state.State)) {
				continue // it has changed since it was found
			}
			if len(r.state.History) > 0 {
				sum.Records++
				sum.Events += int64(len(r.state.History))
			} else if !r.removed && db.unseenOf(k)+int64(f.unseen) >= db.unseenMax {
				return nil, archive.ErrUnseen(int(db.unseenMax))
			}
			f.remove(r, tombstones)
		}
		err := f.finish()
		listed, buried, unseen = f.listed, f.buried, f.unseen
		return f.writes, err
	})
	if err == nil {
		db.tombstones.Add(int64(buried))
		db.addUnseen(k, int64(unseen))
		db.rowsWritten(k, listed)
	} else {
		sum = wire.Deleted{}
	}
	return sum, err
}

// remove takes a record out of the database; finish tells its row, the orphans and the count. With a tombstone it never
// comes back.
func (f *folding) remove(r *record, tombstone bool) {
	if r.removed {
		return
	}
	for _, h := range r.state.History {
		if event, ok := parseUUID(h.ID); ok && h.Hash != "" {
			f.writes = append(f.writes, write{key: f.keys.body(r.id, event)})
		}
	}
	if len(r.state.History) > 0 {
		f.removeState(r)
	}
	if r.state.Hides() {
		for _, m := range r.state.Had() {
			f.writes = append(f.writes, write{key: f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.id)})
		}
	}
	if r.waiting.Requests > 0 && !r.orphan { // it came with this batch
		f.orphans.Add(archive.Orphans{}.Minus(r.waiting))
	}
	if tombstone {
		now, unseen := f.db.now(), len(r.state.History) == 0
		f.writes = append(f.writes, write{f.keys.tombstone(r.id), tombstoneOf(now, unseen)}, write{eraseKey, appendTime(nil, now)})
		f.buried++
		if unseen {
			f.unseen++
		}
	}
	r.removed = true
}

// forget makes the tombstone of a metadata value.
func (f *folding) forget(d wire.Deletion) error {
	known, err := f.selectors()
	if err != nil {
		return err
	}
	hash := rowcode.HashValue(d.Key, d.Value)
	before := d.Before
	if old, ok := known[hash]; ok && old.After(before) {
		before = old
	} else if !ok && len(known) >= selectorsMax {
		return wire.Errorf(wire.CodeTooLarge, "This account has deleted by %d metadata values; no more can be remembered. Delete by request_id.", selectorsMax)
	}
	if _, ok := known[hash]; !ok {
		f.buried++
	}
	known[hash] = before
	f.writes = append(f.writes, write{f.keys.selector(hash), appendTime(nil, before)})
	return nil
}

// A tombstone of a record is when it was deleted, and one byte more if there was no record. The second is told from the
// first by its length, so that a start need not read them.
const tombstoneBytes = 12

func tombstoneOf(at time.Time, unseen bool) []byte {
	value := appendTime(nil, at)
	if unseen {
		value = append(value, 1)
	}

	return value
}

// unseenOf counts an account's tombstones of records that were not there.
func (db *DB) unseenOf(k keys) int64 {
	db.unseenMu.Lock()
	defer db.unseenMu.Unlock()

	return db.unseen[k]
}

func (db *DB) addUnseen(k keys, n int64) {
	if n == 0 {
		return
	}
	db.unseenMu.Lock()
	defer db.unseenMu.Unlock()

	if db.unseen == nil {
		db.unseen = map[keys]int64{}
	}
	db.unseen[k] += n
}

// countTombstones counts those of all accounts, by their keys alone.
func (db *DB) countTombstones() error {
	accounts, err := db.accountKeys()
	if err != nil {
		return err
	}
	return db.view(func(txn *badger.Txn) error {
		for k := range accounts {
			for _, table := range []byte{tableTombstone, tableSelector} {
				it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(table)})
				for it.Rewind(); it.Valid(); it.Next() {
					db.tombstones.Add(1)
					if table == tableTombstone && it.Item().ValueSize() > tombstoneBytes {
						db.addUnseen(k, 1)
					}
				}
				it.Close()
			}
		}
		return nil
	})
}

// selectorsMax bounds the deleted metadata values of an account, which are held in memory: 5 MB.
const selectorsMax = 100_000

// selectors are the account's deleted metadata values. Only changes use them, which run one by one.
func (f *folding) selectors() (map[[16]byte]time.Time, error) {
	if known := f.db.selectors[f.keys]; known != nil {
		return known, nil
	}
	known := make(map[[16]byte]time.Time)
	err := f.db.each(context.Background(), f.txn, f.keys.table(tableSelector), nil, func(key, value []byte) (bool, error) {
		at, ok := readTime(value)
		if !ok {
			return false, damaged(key, rowcode.ErrRow)
		}
		known[[16]byte(key[len(key)-16:])] = at
		return true, nil
	})
	if err == nil {
		f.db.selectors[f.keys] = known
	}
	return known, err
}

// keepOut removes a record for which a deletion by metadata is, now that it has an event.
func (f *folding) keepOut(r *record, e *archive.Event) error {
	if len(e.Metadata) == 0 && e.Request == nil {
		return nil
	}
	f.hide(r, r.state.HiddenBy(e))
	known, err := f.selectors()
	if err != nil || len(known) == 0 {
		return err
	}
	if r.state.Deleted(func(key, value string) (before time.Time, ok bool) {
		before, ok = known[rowcode.HashStored(key, value)]
		return before, ok
	}) {
		f.remove(r, true)
	}

	return nil
}

// hide lets a record be found by metadata values that its row does not show.
func (f *folding) hide(r *record, values []wire.MetadataRow) {
	for _, m := range values {
		f.writes = append(f.writes, write{f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.id), mark})
	}
}

// hidden is the key that finds a record by a metadata value that no list shows.
func (k keys) hidden(hash [16]byte, id uuid) []byte {
	return append(append(k.table(tableHidden), hash[:]...), id[:]...)
}

// tombstone is the key that keeps a deleted record out.
func (k keys) tombstone(id uuid) []byte { return append(k.table(tableTombstone), id[:]...) }

// selector is the key that keeps out what has a metadata value; see archive.HashValue.
func (k keys) selector(hash [16]byte) []byte {
	return append(k.table(tableSelector), hash[:]...)
}

// appendTime appends 12 bytes: seconds and nanoseconds.
func appendTime(b []byte, at time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(at.Nanosecond()))
}

func readTime(b []byte) (time.Time, bool) {
	if len(b) < 12 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:]))).UTC(), true
}
