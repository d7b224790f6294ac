package badgerdb

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/archive"
)

// largeState is the first byte of a state that may have deltas.
var largeState = []byte{1}

// state reads a record, whatever parts it is stored in. One that does not exist has no
// history.
func (db *DB) state(txn *badger.Txn, k keys, id uuid) (archive.Stored, error) {
	value, err := loadBytes(txn, k.record(id))
	if value == nil || err != nil {
		return archive.Stored{}, err
	}
	return db.joinState(txn, k, id, value)
}

// joinState decodes the record whose value is stored under its key, and reads its deltas.
func (db *DB) joinState(txn *badger.Txn, k keys, id uuid, value []byte) (archive.Stored, error) {
	key := k.record(id)

	// JSON never begins with this byte.
	plain, large := bytes.CutPrefix(value, largeState)
	s, err := archive.ReadStored(plain, large)
	if err != nil {
		return archive.Stored{}, damaged(key, err)
	}
	if !s.Large() {
		return s, nil
	}

	// Not cancelled: the caller is folding already, and it is one record.
	var deltas []archive.Delta
	err = db.each(context.Background(), txn, k.deltas(id), nil, func(key, value []byte) (bool, error) {
		deltas = append(deltas, archive.Delta{After: deltaAfter(key), Value: bytes.Clone(value)})
		return true, nil
	})
	if err != nil {
		return archive.Stored{}, err
	}
	if err := s.Join(deltas); err != nil {
		return archive.Stored{}, damaged(key, err)
	}

	return s, nil
}

// writeState writes a record that changed: all of it, or only what was added.
func (f *folding) writeState(r *archive.Record) error {
	value, after, err := r.State.Encode()
	if err != nil {
		return err
	}

	if after > 0 {
		f.set(f.keys.delta(r.ID, after), value)
		return nil
	}

	// From this size on, later events are written beside it.
	if len(value) >= f.db.deltaMin {
		value = append(bytes.Clone(largeState), value...)
	}
	f.set(f.keys.record(r.ID), value)
	f.removeDeltas(r)

	return nil
}

// removeDeltas removes a record's deltas, which the whole state now contains.
func (f *folding) removeDeltas(r *archive.Record) {
	for _, after := range r.State.Deltas() {
		f.delete(f.keys.delta(r.ID, after))
	}
}

// deltas returns what the keys of all deltas of a record begin with.
func (k keys) deltas(id uuid) []byte { return append(k.table(tableDelta), id[:]...) }

func (k keys) delta(id uuid, after int) []byte {
	return binary.BigEndian.AppendUint32(k.deltas(id), uint32(after))
}

// deltaAfter reads archive.Delta.After from a key that delta returned.
func deltaAfter(key []byte) int { return int(binary.BigEndian.Uint32(key[len(key)-4:])) }
