package badgerdb

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
)

// Apply folds events in one transaction; see archive.Store.
func (db *DB) Apply(ctx context.Context, account string, events []archive.Event) (results []wire.Result, err error) {
	k, err := keysOf(account)
	if err != nil {
		return nil, err
	}
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

func (db *DB) apply(ctx context.Context, k keys, events []archive.Event) (results []wire.Result, err error) {
	packed, bytes := db.packBodies(events)
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
	db.tombstones.Add(int64(buried))
	db.rowsWritten(k, listed)
	return results, nil
}

// packBodies compresses the bodies that are kept, before anybody has to wait for it.
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

// rowsWritten packs an account's rows when there are enough. Who wrote many of them waits until it is done; who wrote
// few does not wait for what others wrote. What it writes tells nothing new, so a failure harms nobody.
func (db *DB) rowsWritten(k keys, rows int) {
	if !db.due(k, rows) {
		return
	}
	if rows >= db.packing.every/packedByFew {
		db.packNow(k)
		return
	}

	db.packMu.Lock()
	defer db.packMu.Unlock()
	switch {
	case db.packEnded:
	case db.packBeside:
		db.unpacked[k] = db.packing.every // the next write asks again
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

// packedByFew is which part of the rows that are packed together is few.
const packedByFew = 16

func (db *DB) packNow(k keys) {
	if err := db.pack(context.Background(), k); err != nil && !wire.IsCode(err, wire.CodeUnavailable) {
		db.logger.Error("rows could not be packed into blocks; searches go on, but slower", "error", err)
	}
}

func (db *DB) newFolding(txn *badger.Txn, k keys) *folding {
	return &folding{db: db, txn: txn, keys: k, records: make(map[string]*record)}
}

// bodyVersion is the first byte of a stored body: see codec.pack.
const bodyVersion = 1

// folding is one batch being folded: each record is read once and written once, however many of its events are in it.
type folding struct {
	db      *DB
	txn     *badger.Txn
	keys    keys
	records map[string]*record // by request id
	order   []*record          // as they were met, so that equal batches write equally
	orphans *archive.Orphans   // the account's tally; nil until it matters
	held    int                // what the states weighed when they were read
	writes  []write
	listed  int // rows among the writes
	buried  int // new tombstones among them
	unseen  int // those of records that were not there
}

// record is one record of a batch.
type record struct {
	id      uuid
	state   archive.Stored
	row     []byte          // the place of its row before the batch; nil if it had none
	orphan  bool            // it was one before the batch
	bytes   uint64          // of its events before the batch
	waiting archive.Orphans // its part in the tally
	changed bool
	removed bool // and never to come back
}

func (f *folding) fold(e archive.Event, body []byte) (wire.Result, error) {
	r, err := f.record(e.RequestID)
	if err != nil {
		return wire.Result{}, err
	}
	if r.removed {
		return wire.Result{ID: e.ID, Code: wire.ResultDuplicate}, nil
	}
	if waits := r.state.WouldWait(e); waits || r.waiting.Requests > 0 {
		if err := f.loadOrphans(); err != nil {
			return wire.Result{}, err
		}
		if waits && f.orphans.Full() {
			return archive.OrphanLater(e.ID), nil
		}
	}
	result := r.state.Take(e)
	if result.Code != wire.ResultAccepted {
		return result, nil
	}
	r.changed = true
	if now := r.state.Waiting(); now != r.waiting {
		f.orphans.Add(now.Minus(r.waiting))
		r.waiting = now
	}
	if e.Hash != "" {
		id, ok := parseUUID(e.ID)
		if !ok {
			return wire.Result{}, badID(e.ID)
		}
		f.writes = append(f.writes, write{f.keys.body(r.id, id), body})
	}
	return result, f.keepOut(r, &e)
}

// record reads a record, or begins one.
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
	if f.held += r.state.Weight(); f.held > f.db.heldBytesMax && len(f.order) > 0 {
		return nil, archive.ErrHeavy
	}
	if len(r.state.History) == 0 {
		tombstone, err := loadBytes(f.txn, f.keys.tombstone(id))
		if err != nil {
			return nil, err
		}
		r.removed = tombstone != nil
	}
	if !r.state.Orphan() {
		r.row = place(r.state.Request.At, id)
	}
	r.bytes = uint64(r.state.Bytes())
	r.waiting = r.state.Waiting()
	r.orphan = r.waiting.Requests > 0
	f.records[requestID] = r
	f.order = append(f.order, r)
	return r, nil
}

// finish writes the states that changed, their rows, and the count of records.
func (f *folding) finish() error {
	var added accountCount // less what is removed, modulo 2^64
	for _, r := range f.order {
		if r.removed && r.row != nil {
			hide, err := f.db.hide(f.txn, f.keys, r.row)
			if err != nil {
				return err
			}
			f.writes = append(f.writes, hide)
			f.listed++
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
		if !r.changed || r.removed {
			continue
		}
		if err := f.writeState(r); err != nil {
			return err
		}
		if err := f.listOrphan(r); err != nil {
			return err
		}
		if r.state.Orphan() {
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
	count, err := loadTally(f.txn, f.keys)
	if err != nil {
		return err
	}
	count.records, count.bytes = count.records+added.records, count.bytes+added.bytes
	f.writes = append(f.writes, write{f.keys.count(), count.encode()})
	return nil
}

// accountCount is what an account holds: records that lists show, and bytes of the bodies of all events, as they were sent.
type accountCount struct{ records, bytes uint64 }

func (c accountCount) encode() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, c.records), c.bytes)
}

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

// list writes a record's row, and removes the one it had elsewhere: an earlier request takes over an id's record.
func (f *folding) list(r *record) error {
	row, _ := r.state.Row()
	at := place(r.state.Request.At, r.id)
	if r.row != nil && string(r.row) != string(at) {
		hide, err := f.db.hide(f.txn, f.keys, r.row)
		if err != nil {
			return err
		}
		f.writes = append(f.writes, hide)
	}
	f.listed++
	key, err := f.db.loneKey(f.txn, f.keys, at)
	f.writes = append(f.writes, write{key, rowcode.Encode(&row)})
	return err
}

func badID(id string) error {
	return wire.Errorf(wire.CodeInternal, "%.40q is not an id; the archive should not have passed it on.", id)
}
