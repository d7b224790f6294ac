package badgerdb

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/badgerdb/blocks"
	"promptspool/spool/archive/rowcode"
)

// Apply folds events in one transaction; see archive.Store.
func (db *DB) Apply(ctx context.Context, account string, events []archive.Event) (results []wire.Result, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}

	// A batch that is too heavy for one transaction is folded in parts.

	err = archive.Apart(events, func(part []archive.Event) error {
		more, err := db.apply(ctx, k, part)
		results = append(results, more...)
		return err
	})
	if err != nil {
		return nil, err
	}

	return results, nil
}

// apply folds events in one transaction, and fails with archive.ErrHeavy if their records
// weigh too much for one.
func (db *DB) apply(ctx context.Context, k keys, events []archive.Event) (results []wire.Result, err error) {
	packed, bytes := db.packBodies(events)

	// Set by the change, which the committer runs, perhaps in the goroutine of another
	// caller.
	listed, buried := 0, 0
	err = db.commit.doMany(ctx, bytes, len(events), func(txn *badger.Txn) ([]write, error) {
		f := db.newFolding(txn, k)
		for i, e := range events {
			r, err := f.fold(e, packed[i])
			if err != nil {
				return nil, err
			}
			results = append(results, r)
		}

		err := f.finish()
		listed, buried = f.listed, f.buried

		return f.writes, err
	})
	if err != nil {
		return nil, err
	}

	// Only now: a failed commit must not count.
	db.tombstones.Add(int64(buried))
	db.rowsWritten(k, listed)

	return results, nil
}

// packBodies compresses the bodies that are kept, outside the committer, so that no other
// write waits for it.
func (db *DB) packBodies(events []archive.Event) (packed [][]byte, bytes int) {
	packed = make([][]byte, len(events))
	for i := range events {
		bytes += len(events[i].Body)
		if events[i].Hash != "" {
			packed[i] = db.codec.packBody(events[i].Body)
		}
	}
	return packed, bytes
}

// rowsWritten packs an account's rows when there are enough. A writer of many rows waits
// until that is done; a writer of few does not wait for what others wrote. Packing only
// rearranges what is already stored, so its failure harms nobody.
func (db *DB) rowsWritten(k keys, rows int) {
	if !db.due(k, rows) {
		return
	}
	// Whoever writes that much waits for its packing, or rows would pile up faster than
	// they are packed.
	if rows >= db.packing.every/packedByFew {
		db.packNow(k)
		return
	}

	db.packMu.Lock()
	defer db.packMu.Unlock()

	switch {
	case db.packEnded: // the database is being closed
	case db.packBeside:
		db.unpacked[k] = db.packing.every // the next write tries again
	default:
		db.packBeside = true
		db.packers.Go(func() {
			db.packNow(k)

			db.packMu.Lock()
			db.packBeside = false
			db.packMu.Unlock()
		})
	}
}

// packedByFew sets what counts as few rows: less than this fraction of packing.every.
const packedByFew = 16

// packNow packs an account's rows, and logs a failure that the caller need not know.
func (db *DB) packNow(k keys) {
	if err := db.pack(context.Background(), k); err != nil && !wire.IsCode(err, wire.CodeUnavailable) {
		db.logger.Error("rows could not be packed into blocks; searches still work, but slower", "error", err)
	}
}

func (db *DB) newFolding(txn *badger.Txn, k keys) *folding {
	return &folding{db: db, txn: txn, keys: k, records: make(map[string]*record)}
}

// folding is the state while one batch is folded. Each record is read once and written
// once, however many of its events are in the batch.
type folding struct {
	db      *DB
	txn     *badger.Txn
	keys    keys
	records map[string]*record // by request id
	order   []*record          // in the order first met, so that equal batches write equally
	orphans *archive.Orphans   // the account's tally; nil until it is needed
	held    int                // weight of the states when they were read
	writes  []write
	listed  int // rows among the writes
	buried  int // new tombstones among them
	unseen  int // of these, tombstones of records that did not exist
}

// record is one record of a batch.
type record struct {
	id    uuid
	state archive.Stored

	// What it was before the batch.
	row    []byte  // the place of its row; nil if it had none
	spans  []write // what is written of it among the spans
	orphan bool
	bytes  uint64 // of its events

	waiting archive.Orphans // its current part in the tally
	changed bool
	sameRow bool // the row in the list says all of it
	removed bool // for good: later events are duplicates
}

// fold adds one event to its record. body is the event's body, packed.
func (f *folding) fold(e archive.Event, body []byte) (wire.Result, error) {
	r, err := f.record(e.RequestID)
	if err != nil {
		return wire.Result{}, err
	}
	if r.removed {
		return wire.Result{ID: e.ID, Code: wire.ResultDuplicate}, nil
	}

	// A record without its request counts in the account's tally, which may be full.
	if r.state.WouldWait(e) {
		if err := f.loadOrphans(); err != nil {
			return wire.Result{}, err
		}
		if f.orphans.Full() {
			return archive.OrphanLater(e.ID), nil
		}
	}

	// Duplicates and conflicts change nothing.
	result := r.state.Take(e)
	if result.Code != wire.ResultAccepted {
		return result, nil
	}
	r.changed = true
	if now := r.state.Waiting(); now != r.waiting {
		if err := f.loadOrphans(); err != nil {
			return wire.Result{}, err
		}
		f.orphans.Add(now.Minus(r.waiting))
		r.waiting = now
	}

	// Without a hash the body is not kept.
	if e.Hash != "" {
		id, ok := parseUUID(e.ID)
		if !ok {
			return wire.Result{}, badID(e.ID)
		}
		f.writes = append(f.writes, write{f.keys.body(r.id, id), body})
	}

	// An event may bring metadata that was deleted: then the record goes as well.
	return result, f.keepOut(r, &e)
}

// record reads a record, or begins a new one. Later calls for its id return the same one.
func (f *folding) record(requestID string) (*record, error) {
	if r := f.records[requestID]; r != nil {
		return r, nil
	}

	id, ok := parseUUID(requestID)
	if !ok {
		return nil, badID(requestID)
	}
	state, err := f.db.state(f.txn, f.keys, id)
	if err != nil {
		return nil, err
	}

	r := &record{id: id, state: state}

	// All states of a batch are in memory together. One alone is always taken.
	if f.held += r.state.Weight(); f.held > f.db.heldBytesMax && len(f.order) > 0 {
		return nil, archive.ErrHeavy
	}

	// Without a history it is new, unless it was deleted.
	if len(r.state.History) == 0 {
		tombstone, err := loadBytes(f.txn, f.keys.tombstone(id))
		if err != nil {
			return nil, err
		}
		r.removed = tombstone != nil
	}

	// What it counts for until now, which finish takes away again.
	if r.state.Listed() {
		r.row = blocks.EncodePlace(r.state.ListTime(), id)
	}
	r.spans = f.spanKeys(r)
	r.bytes = uint64(r.state.Bytes())
	r.waiting = r.state.Waiting()
	r.orphan = r.waiting != archive.Orphans{}

	f.records[requestID] = r
	f.order = append(f.order, r)

	return r, nil
}

// finish appends the writes for the records that changed: states, rows, orphans and the
// count.
func (f *folding) finish() error {
	var added accountCount // modulo 2^64: it may be negative

	for _, r := range f.order {
		// Deleted: its row leaves the list and the count. An orphan has no row.
		if r.removed && r.row != nil {
			if err := f.unlist(r); err != nil {
				return err
			}
			added.records--
		}

		if r.removed {
			added.bytes -= r.bytes
		} else if r.changed {
			added.bytes += uint64(r.state.Bytes()) - r.bytes
		}

		if r.removed && r.orphan {
			if err := f.unlistOrphan(r); err != nil {
				return err
			}
		}

		f.writeSpans(r)
		if !r.changed || r.removed {
			continue
		}

		// Written: its state, its line among the orphans or its row in the list.
		if err := f.writeState(r); err != nil {
			return err
		}
		if err := f.listOrphan(r); err != nil {
			return err
		}
		if !r.state.Listed() && r.row != nil {
			if err := f.unlist(r); err != nil {
				return err
			}
			added.records--
		}
		if !r.state.Listed() || r.sameRow {
			continue
		}

		if r.row == nil {
			added.records++
		}
		if err := f.list(r); err != nil {
			return err
		}
	}

	if err := f.writeOrphans(); err != nil || added == (accountCount{}) {
		return err
	}

	// Read in this transaction, so it includes the changes before ours in the group.
	count, err := loadTally(f.txn, f.keys)
	if err != nil {
		return err
	}

	count.records, count.bytes = count.records+added.records, count.bytes+added.bytes
	f.writes = append(f.writes, write{f.keys.count(), count.encode()})
	return nil
}

// unlist removes the row that a record had before the batch.
func (f *folding) unlist(r *record) error {
	hide, err := f.db.hide(f.txn, f.keys, r.row)
	if err != nil {
		return err
	}
	f.writes = append(f.writes, hide)
	f.listed++

	return nil
}

// accountCount is what an account holds: records that lists show, and bytes of the bodies
// of all events, uncompressed.
type accountCount struct{ records, bytes uint64 }

func (c accountCount) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.records), c.bytes)
}

// loadTally reads what an account holds; zero if nothing was counted yet.
func loadTally(txn *badger.Txn, k keys) (c accountCount, err error) {
	key := k.count()
	raw, err := loadBytes(txn, key)
	switch {
	case raw == nil || err != nil:
		return c, err
	case len(raw) != 16:
		return c, damaged(key, errors.New("it is not two numbers of 8 bytes"))
	}
	return accountCount{binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[8:])}, nil
}

// list writes a record's row. It removes a row that the record has at another place,
// which happens when an earlier request takes over the id.
func (f *folding) list(r *record) error {
	row, _ := r.state.Row()
	at := blocks.EncodePlace(row.ListTime, r.id)
	if r.row != nil && string(r.row) != string(at) {
		hide, err := f.db.hide(f.txn, f.keys, r.row)
		if err != nil {
			return err
		}
		f.writes = append(f.writes, hide)
	}
	// Alone in any case: if a block has an older form of the row, this one hides it.
	f.listed++
	key, err := f.db.loneKey(f.txn, f.keys, at)
	f.writes = append(f.writes, write{key, rowcode.Encode(&row)})
	return err
}

func badID(id string) error {
	return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the archive should not have passed it on.", id)
}
