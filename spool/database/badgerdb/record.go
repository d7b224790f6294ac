package badgerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
)

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

	plain, large, err := db.unpackState(value)
	var s archive.Stored
	if err == nil {
		s, err = archive.ReadStored(plain, large)
	}
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

	f.set(f.keys.record(r.ID), f.db.packState(value))
	f.removeDeltas(r)

	return nil
}

// packState returns a state as it is stored. From a size on, later events are written as deltas.
func (db *DB) packState(plain []byte) []byte {
	large := len(plain) >= db.deltaMin
	if len(plain) >= packedStateMin {
		if packed, ok := db.codec.QuickState(plain); ok {
			if large {
				packed[0] |= compress.Mark
			}
			return packed
		}
	}

	if large {
		return append(bytes.Clone(largeState), plain...)
	}
	return plain
}

// unpackState returns a state that packState made, and whether it may have deltas.
func (db *DB) unpackState(value []byte) (plain []byte, large bool, err error) {
	if compress.IsQuick(value) {
		plain, err = db.codec.Unpack(value, nil)
		return plain, value[0]&compress.Mark != 0, err
	}

	// JSON never begins with this byte.
	plain, large = bytes.CutPrefix(value, largeState)
	return plain, large, nil
}

// removeDeltas removes a record's deltas, which the whole state now contains.
func (f *folding) removeDeltas(r *archive.Record) {
	for _, after := range r.State.Deltas() {
		f.delete(f.keys.delta(r.ID, after))
	}
}

// readRecord reads a record with the bodies of its events: all, or those needed to show
// it.
func (db *DB) readRecord(
	_ context.Context, account, requestID string, shown bool,
) (state archive.State, bodies map[string]json.RawMessage, err error) {
	id, ok := parseUUID(requestID)
	if !ok {
		return state, nil, wire.Errorf(wire.CodeNotFound, "There is no request %.40q.", requestID)
	}

	// State and bodies from one snapshot: an edit in between would mix two forms.
	err = db.viewOf(account, func(txn *badger.Txn, k keys) error {
		stored, err := db.state(txn, k, id)
		if err == nil && len(stored.History) == 0 {
			err = wire.Errorf(wire.CodeNotFound, "There is no request %s.", requestID)
		}
		if err != nil {
			return err
		}

		state = stored.State
		bodies, err = db.bodies(txn, k, id, &state, shown)
		return err
	})
	return state, bodies, err
}

// bodies reads the stored bodies of a record's events: all, or those needed to show the
// record.
func (db *DB) bodies(
	txn *badger.Txn, k keys, id uuid, s *archive.State, shown bool,
) (map[string]json.RawMessage, error) {
	return s.Bodies(shown, func(h archive.Entry) ([]byte, error) { return db.loadBody(txn, k, id, h) })
}

// metadata reads a record's metadata, including long values that its state holds only in
// part.
func (db *DB) metadata(txn *badger.Txn, k keys, requestID string) (map[string]string, error) {
	id, _ := parseUUID(requestID)
	stored, err := db.state(txn, k, id)
	if err != nil {
		return nil, err
	}

	bodies, err := db.bodies(txn, k, id, &stored.State, true)
	stored.Restore(bodies)

	return stored.Whole(), err
}

// loadBody reads the body of one event and checks it against the stored hash.
func (db *DB) loadBody(txn *badger.Txn, k keys, id uuid, h archive.Entry) ([]byte, error) {
	// A body is read long after it was written, so its hash is checked each time.
	event, _ := parseUUID(h.ID)
	key := k.body(id, event)
	body, err := db.readBody(txn, k, key)
	if err == nil && archive.HashBody(body) != h.Hash {
		err = damaged(key, errors.New("the body is not what was stored"))
	}

	return body, err
}

// requestBody reads the body of a record's request.
func (db *DB) requestBody(txn *badger.Txn, k keys, requestID string) ([]byte, error) {
	id, _ := parseUUID(requestID)
	state, err := db.state(txn, k, id)
	if err != nil || !state.Listed() {
		return nil, err
	}

	h, ok := state.Searched()
	if !ok {
		return nil, nil
	}

	return db.loadBody(txn, k, id, h)
}

func spanPosition(key []byte) query.Position {
	at, id := blocks.DecodePlace(key)
	return query.Position{At: at, RequestID: uuid(id).String()}
}

// oldestSpans returns the places of up to limit spans, oldest first.
func oldestSpans(txn *badger.Txn, k keys, limit int) (places []query.Position) {
	// Places begin with the newest, so the oldest are at the end of the table.
	it := txn.NewIterator(badger.IteratorOptions{Prefix: k.table(tableSpan), Reverse: true})
	defer it.Close()

	// After every key of the table.
	end := append(k.table(tableSpan), slices.Repeat([]byte{0xff}, blocks.PlaceBytes+1)...)
	for it.Seek(end); it.Valid() && len(places) < limit; it.Next() {
		places = append(places, spanPosition(it.Item().Key()))
	}

	return places
}

// statesStep is how many keys one read of States looks at.
const statesStep = 1000

// States returns records of a part; see archive.Store.
func (db *DB) States(
	ctx context.Context, account string, of archive.Part, after string, limit int,
) (states []archive.State, next string, err error) {
	k := keysOf(account)
	prefix := k.table(tableOrphan)
	switch {
	case of.Tagged:
		prefix = k.table(tableSpan)
	case of.Trace != (uuid{}):
		prefix = append(k.table(tableTrace), of.Trace[:]...)
	}

	// after is what follows the prefix in the last key: an id as text, or the place of a span.
	rest := []byte(after)
	if id, ok := parseUUID(after); ok {
		rest = id[:]
	}
	from := prefix
	if after != "" {
		// The first key after it.
		from = append(append(bytes.Clone(prefix), rest...), 0)
	}

	seen, held, more := 0, 0, false
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, prefix, from, func(key, value []byte) (bool, error) {
			// One key beyond the page means that more follow. There is one record at least,
			// however large it is: or a reader would never come further.
			more = len(states) == limit || seen == statesStep || held > db.heldBytesMax
			if more {
				return false, nil
			}
			seen++
			rest = bytes.Clone(key[len(prefix):])
			if of.Tagged && !bytes.Equal(value, tagged) {
				return true, nil
			}

			id := rest
			if of.Tagged {
				_, spanID := blocks.DecodePlace(rest)
				id = spanID[:]
			}
			state, err := db.state(txn, k, uuid(id))
			held += state.Weight()
			states = append(states, state.State)
			return true, err
		})
	})
	switch {
	case !more:
	case of.Tagged:
		next = string(rest)
	default:
		next = uuid(rest).String()
	}

	return states, next, err
}
