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

	// Asked for before the first is gone and after the last: an Erase that runs meanwhile
	// may end in between, having seen only some of them.
	db.askErase()
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

// deleteValue deletes the records that have a metadata value.
func (db *DB) deleteValue(ctx context.Context, account string, k keys, d wire.Deletion) (wire.Deleted, error) {
	// The tombstone comes first, so that no new record gets past the walk.
	buried := 0
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) ([]write, error) {
		f := db.newFolding(txn, k)
		err := f.forget(d)
		buried = f.buried
		return f.writes, err
	})
	if err != nil {
		return wire.Deleted{}, err
	}
	db.tombstones.Add(int64(buried))

	// Then the records, wherever they are found: orphans have no row, and some rows do
	// not show the value.
	which := func(s *archive.State) bool { return s.Deleted(archive.SelectorOf(d)) }
	sum, err := db.deleteOrphans(ctx, k, which, true)
	if err != nil {
		return sum, err
	}

	shown, err := db.deleteShown(ctx, account, k, d, which)
	sum.Records += shown.Records
	sum.Events += shown.Events
	if err != nil {
		return sum, err
	}

	// Behind the rows: a later event may hide a value meanwhile. Only one that sets a deleted
	// value, or a request, shows it again, and keepOut looks at these.
	hidden, err := db.hiddenIDs(ctx, k, d)
	if err != nil {
		return sum, err
	}
	for step := range slices.Chunk(hidden, deleteStep) {
		part, err := db.deleteRecords(ctx, k, step, which, true)
		sum.Records += part.Records
		sum.Events += part.Events
		if err != nil {
			return sum, err
		}
	}

	// Last, as nothing finds spans by a value: all with metadata are looked at, and if that
	// takes too long, the requests are gone.
	spans, err := db.deleteSpans(ctx, k, which, true)
	sum.Records += spans.Records
	sum.Events += spans.Events

	return sum, err
}

// deleteShown deletes those records that which selects, out of those whose rows show a
// value.
func (db *DB) deleteShown(
	ctx context.Context, account string, k keys, d wire.Deletion, which func(*archive.State) bool,
) (sum wire.Deleted, err error) {
	value, err := json.Marshal(d.Value)
	if err != nil {
		return sum, err
	}
	q, err := query.Compile(wire.Search{FilterGroup: &wire.Filter{
		Field:     "metadata",
		NestedKey: d.Key,
		Operator:  "is",
		Value:     value,
	}})

	for err == nil {
		var ids []string
		var last query.Position
		_, err := db.Scan(ctx, account, q, rowcode.PlaceColumns, func(row *wire.Row) (bool, error) {
			last = query.PositionOf(row)
			ids = append(ids, last.RequestID)
			return len(ids) < deleteStep, nil
		})
		if err != nil {
			return sum, err
		}

		part, err := db.deleteRecords(ctx, k, ids, which, true)
		sum.Records += part.Records
		sum.Events += part.Events
		if err != nil || len(ids) < deleteStep {
			return sum, err
		}

		// By place, not by number: which may leave some, and others come in meanwhile.
		q.After = &last
	}

	return sum, err
}

// hiddenIDs returns the records that have, or had, a value that their rows do not show.
func (db *DB) hiddenIDs(ctx context.Context, k keys, d wire.Deletion) (ids []string, err error) {
	err = db.view(func(txn *badger.Txn) error {
		// What a record hides is in none of its rows, so it has a table of its own.
		hash := rowcode.HashValue(d.Key, d.Value)
		prefix := append(k.table(tableHidden), hash[:]...)

		return db.each(ctx, txn, prefix, nil, func(key, _ []byte) (bool, error) {
			ids = append(ids, uuid(key[len(key)-16:]).String())
			return true, nil
		})
	})
	return ids, err
}

// deleteOrphans deletes those records that which selects, out of those whose request has
// not arrived.
func (db *DB) deleteOrphans(
	ctx context.Context, k keys, which func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
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

	// Outside the read: it must not wait for the committer, which lockAlone may hold
	// while it waits for all reads to end.
	for step := range slices.Chunk(ids, deleteStep) {
		if err != nil {
			break
		}

		var part wire.Deleted
		part, err = db.deleteRecords(ctx, k, step, which, tombstones)
		sum.Records += part.Records
		sum.Events += part.Events
	}

	return sum, err
}

// deleteRecords deletes records by their ids: those that which selects, or all if it is
// nil. With tombstones they can never come back.
func (db *DB) deleteRecords(
	ctx context.Context, k keys, ids []string, which func(*archive.State) bool, tombstones bool,
) (sum wire.Deleted, err error) {
	err = archive.Apart(ids, func(part []string) error {
		deleted, err := db.deleteTogether(ctx, k, part, which, tombstones)
		sum.Records += deleted.Records
		sum.Events += deleted.Events
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

				// Nothing to delete, but the tombstone keeps it out later. Their number
				// is bounded: anybody may invent ids.
			} else if !r.removed && db.unseenOf(k)+int64(f.unseen) >= db.unseenMax {
				return nil, archive.ErrUnseen(int(db.unseenMax))
			}

			f.remove(r, tombstones)
		}

		err := f.finish()
		listed, buried, unseen = f.listed, f.buried, f.unseen
		return f.writes, err

	})
	if err != nil {
		return wire.Deleted{}, err
	}

	db.tombstones.Add(int64(buried))
	db.addUnseen(k, int64(unseen))
	db.rowsWritten(k, listed)

	return sum, nil
}

// remove deletes a record: its bodies, state and marks. finish then deletes its row, and
// its part of the tally of orphans and the count. With a tombstone the record never comes
// back.
func (f *folding) remove(r *record, tombstone bool) {
	if r.removed {
		return
	}

	// Its bodies, by the ids of its events.
	for _, h := range r.state.History {
		if event, ok := parseUUID(h.ID); ok && h.Hash != "" {
			f.writes = append(f.writes, write{key: f.keys.body(r.id, event)})
		}
	}
	if len(r.state.History) > 0 {
		f.removeState(r)
	}

	// The marks that lead to values its row does not show.
	if r.state.Hides() {
		for _, m := range r.state.Had() {
			f.writes = append(f.writes, write{key: f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.id)})
		}
	}

	if r.waiting != (archive.Orphans{}) && !r.orphan { // it came with this batch
		f.orphans.Add(archive.Orphans{}.Minus(r.waiting))
	}

	if tombstone {
		// With the note that bytes are to be erased, so that a restart does not forget
		// it.
		now, unseen := f.db.now(), len(r.state.History) == 0
		f.writes = append(f.writes,
			write{f.keys.tombstone(r.id), tombstoneOf(now, unseen)},
			write{eraseKey, appendTime(nil, now)},
		)
		f.buried++
		if unseen {
			f.unseen++
		}
	}

	r.removed = true
}

// forget writes the tombstone of a metadata value.
func (f *folding) forget(d wire.Deletion) error {
	known, err := f.selectors()
	if err != nil {
		return err
	}

	// The value itself must not stay in the files, so its hash is remembered.
	hash := rowcode.HashValue(d.Key, d.Value)
	before := d.Before

	// A later deletion of the same value extends the earlier one, and never shortens it.
	if old, ok := known[hash]; ok && old.After(before) {
		before = old
	} else if !ok && len(known) >= selectorsMax {
		return wire.Errorf(wire.CodeTooLarge, "This account has deleted by %d metadata values; "+
			"no more can be remembered. Delete by request_id.", selectorsMax)
	}

	if _, ok := known[hash]; !ok {
		f.buried++
	}

	// In memory too, for the changes that follow in the same group.
	known[hash] = before
	f.writes = append(f.writes, write{f.keys.selector(hash), appendTime(nil, before)})

	return nil
}

// tombstoneBytes is the length of a record's tombstone: the time of the deletion. If
// there was no record, one more byte follows, so that counting these at a start takes
// only their lengths.
const tombstoneBytes = 12

// tombstoneOf returns a record's tombstone.

func tombstoneOf(at time.Time, unseen bool) []byte {
	value := appendTime(nil, at)
	if unseen {
		value = append(value, 1)
	}
	return value
}

// unseenOf returns how many of an account's tombstones are of records that did not exist.
func (db *DB) unseenOf(k keys) int64 {
	db.unseenMu.Lock()
	defer db.unseenMu.Unlock()
	return db.unseen[k]
}

// addUnseen adds to what unseenOf returns.
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

// countTombstones counts the tombstones of all accounts, without reading any value.
func (db *DB) countTombstones() error {
	accounts, err := db.accountKeys()
	if err != nil {
		return err
	}

	return db.view(func(txn *badger.Txn) error {
		for k := range accounts {
			for _, table := range []byte{tableTombstone, tableSelector} {
				// Without prefetching, an iterator reads keys and the lengths of values only.
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

// selectorsMax bounds the deleted metadata values of an account, which are held in
// memory: 5 MB.
const selectorsMax = 100_000

// selectors returns the account's deleted metadata values, with the time up to which each
// was deleted. Only changes call it, one at a time.
func (f *folding) selectors() (map[[16]byte]time.Time, error) {
	if known := f.db.selectors[f.keys]; known != nil {
		return known, nil
	}

	// Read whole, once: each event of each later write asks for them.
	known := make(map[[16]byte]time.Time)
	prefix := f.keys.table(tableSelector)
	err := f.db.each(context.Background(), f.txn, prefix, nil, func(key, value []byte) (bool, error) {
		at, ok := readTime(value)
		if !ok {
			return false, damaged(key, rowcode.ErrRow)
		}

		// The key ends with the hash of the value, which itself is kept nowhere.
		known[[16]byte(key[len(key)-16:])] = at
		return true, nil
	})

	if err == nil {
		f.db.selectors[f.keys] = known
	}

	return known, err
}

// keepOut removes a record that now has a deleted metadata value, after it got an event.
func (f *folding) keepOut(r *record, e *archive.Event) error {
	// Found by values that only an earlier event had, or that are too long for the row. A span
	// that is no call may replace one, and takes its metadata out of the row.
	f.hide(r, r.state.HiddenBy(e))

	if len(e.Metadata) == 0 && e.Request == nil {
		return nil
	}

	known, err := f.selectors()
	if err != nil || len(known) == 0 {
		return err
	}

	deleted := r.state.DeletedBy(e, func(key, value string) (before time.Time, ok bool) {
		before, ok = known[rowcode.HashStored(key, value)]
		return before, ok
	})
	if deleted {
		f.remove(r, true)
	}

	return nil
}

// hide marks metadata values that a record has and its row does not show, so that it is
// found by them.
func (f *folding) hide(r *record, values []wire.MetadataRow) {
	for _, m := range values {
		f.writes = append(f.writes, write{f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.id), mark})
	}
}

// hidden returns the key that finds a record by a metadata value that its row does not
// show.
func (k keys) hidden(hash [16]byte, id uuid) []byte {
	return append(append(k.table(tableHidden), hash[:]...), id[:]...)
}

// tombstone returns the key that keeps a deleted record out.
func (k keys) tombstone(id uuid) []byte { return append(k.table(tableTombstone), id[:]...) }

// selector returns the key that keeps out records with a metadata value; see
// rowcode.HashValue.
func (k keys) selector(hash [16]byte) []byte {
	return append(k.table(tableSelector), hash[:]...)
}

// appendTime appends a time as 12 bytes: seconds and nanoseconds.
func appendTime(b []byte, at time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(at.Nanosecond()))
}

// readTime reads what appendTime wrote. ok is false if it is too short.
func readTime(b []byte) (at time.Time, ok bool) {
	if len(b) < 12 {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint32(b[8:]))).UTC(), true
}
