package badgerdb

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"math"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/keyed"
	"promptspool/spool/database/transfer"
)

// moved are the tables of an account that Export walks; everything else of its records
// derives from them.
var moved = []byte{tableTombstone, tableSelector, tableRecord}

// errTime is for a tombstone that holds no time.
var errTime = errors.New("it is not a time")

// Small returns what is not about records; see transfer.Mover.
func (db *DB) Small() keyed.Store { return smallValues{db} }

// Export walks over the records; see transfer.Mover. A place is a key in base64.
func (db *DB) Export(ctx context.Context, place string, fn func(item transfer.Item, place string) error) error {
	after, err := base64.RawURLEncoding.DecodeString(place)
	if err != nil {
		return wire.Errorf(wire.CodeInvalid, "The copy is not of this archive: %q is not a place in it.", place)
	}

	names, err := db.accountKeys()
	if err != nil {
		return err
	}
	var prefixes [][]byte
	for k := range names {
		for _, table := range moved {
			prefixes = append(prefixes, k.table(table))
		}
	}

	// In the order of the keys themselves, so that a key tells what comes after it.
	slices.SortFunc(prefixes, bytes.Compare)

	// One snapshot for all of it, as of the moment at which the copy begins or continues.
	return db.view(func(txn *badger.Txn) error {
		for _, prefix := range prefixes {
			// A copy that is resumed begins after the last key that it has.
			from := prefix
			if bytes.HasPrefix(after, prefix) {
				from = append(bytes.Clone(after), 0)
			} else if bytes.Compare(prefix, after) < 0 { // copied before
				continue
			}

			err := db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
				item, err := db.item(txn, key, value)
				if err == nil {
					err = fn(item, base64.RawURLEncoding.EncodeToString(key))
				}
				return err == nil, err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// item reads what is under a key of a table that moves.
func (db *DB) item(txn *badger.Txn, key, value []byte) (item transfer.Item, err error) {
	k, table, rest := accountOf(key)
	item.Of = string(k[2:])

	switch table {
	case tableTombstone:
		// Its length shows if there was a record; see tombstoneBytes.
		at, ok := readTime(value)
		if !ok {
			return item, damaged(key, errTime)
		}
		item.Tombstone = &transfer.Tombstone{
			RequestID: uuid(rest).String(),
			At:        at,
			Unseen:    len(value) > tombstoneBytes,
		}
	case tableSelector:
		at, ok := readTime(value)
		if !ok {
			return item, damaged(key, errTime)
		}
		item.Forgotten = &transfer.Forgotten{Hash: [16]byte(rest), Before: at}
	case tableRecord:
		item.Record, err = db.export(txn, k, uuid(rest), value)
	}
	return item, err
}

// export reads a record with its bodies.
func (db *DB) export(txn *badger.Txn, k keys, id uuid, value []byte) (*transfer.Record, error) {
	state, err := db.joinState(txn, k, id, value)
	if err != nil {
		return nil, err
	}

	// All bodies, also of events that no longer show: the other side must have them too.
	bodies, err := db.bodies(txn, k, id, &state.State, false)
	return &transfer.Record{State: state.State, Bodies: bodies}, err
}

// Import stores items of another database; see transfer.Mover.
func (db *DB) Import(ctx context.Context, items []transfer.Item, mark keyed.Entry) error {
	listed := map[keys]int{} // rows written
	buried := 0
	err := db.commit.do(ctx, 0, func(txn *badger.Txn) (writes []write, err error) {
		clear(listed)
		buried = 0
		records := map[string]*folding{} // by account, so that each counts its records only once

		for i := range items {
			item := &items[i]
			f := records[item.Of]
			if f == nil {
				k, err := keysOf(item.Of)
				if err != nil {
					return nil, err
				}
				if f, err = db.newFolding(txn, k, math.MaxInt); err != nil { // the items bound it
					return nil, err
				}
				records[item.Of] = f
			}

			switch {
			case item.Record != nil:
				err = f.bring(item.Record)
			case item.Tombstone != nil:
				id, ok := parseUUID(item.Tombstone.RequestID)
				if !ok {
					return nil, archive.BadID(item.Tombstone.RequestID)
				}
				err = f.bury(f.keys.tombstone(id), tombstoneOf(item.Tombstone.At, item.Tombstone.Unseen))
			case item.Forgotten != nil:
				err = f.bury(f.keys.selector(item.Forgotten.Hash), appendTime(nil, item.Forgotten.Before))
			}
			if err != nil {
				return nil, err
			}
		}
		clear(db.selectors) // what was deleted elsewhere is not yet known to those in memory

		// Only now: an account's counts are written once, for all its records.
		for _, f := range records {
			own, err := f.finish()
			if err != nil {
				return nil, err
			}
			writes = append(writes, own...)
			listed[f.keys] += f.listed
			buried += f.buried
		}

		return smallWrites(writes, []keyed.Entry{mark})
	})
	if err != nil {
		return err
	}

	// After the commit, as with events: packing reads what is stored.
	db.tombstones.Add(int64(buried))
	for k, rows := range listed {
		db.rowsWritten(k, rows)
	}
	return nil
}

// bury stores a tombstone, and counts it unless it is already here.
func (f *folding) bury(key, value []byte) error {
	there, err := loadBytes(f.txn, key)
	if there == nil {
		f.buried++
	}
	f.db.buries.Store(true)
	f.set(key, value)
	return err
}

// bring stores a record as it was elsewhere, unless it is already here.
func (f *folding) bring(w *transfer.Record) error {
	r, err := f.group.AddLoaded(f, f.account, w.State.RequestID)
	if err != nil {
		return err
	}

	return f.group.Bring(r, w.State, w.Bodies, f.db.codec.Body)
}
