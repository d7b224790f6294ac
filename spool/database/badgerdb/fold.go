package badgerdb

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/wire/jsonscan"
	"promptspool/spool/archive"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/database/badgerdb/blocks"
)

// Apply folds events in one transaction; see archive.Store.
func (db *DB) Apply(ctx context.Context, account string, events []archive.Event) (results []wire.Result, err error) {
	// A batch that is too heavy for one transaction is folded in parts.
	err = archive.Apart(events, func(part []archive.Event) error {
		more, err := db.apply(ctx, keysOf(account), part)
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
	db.noteWords(k, events)
	packed, bytes := db.packBodies(events)
	var group *archive.Group
	err = db.change(ctx, k, bytes, len(events), func(f *folding) error {
		group, results = f.group, nil
		for i := range events {
			if _, err := f.group.AddLoaded(f, f.account, events[i].RequestID); err != nil {
				return err
			}
			result, err := f.group.Fold(f.account, &events[i], packed[i])
			if err != nil {
				return err
			}
			results = append(results, result)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(results) > 0 {
		results[0].Leaves = group.Left
	}

	return results, nil
}

// packBodies compresses the bodies that are kept, outside the committer, so that no other
// write waits for it.
func (db *DB) packBodies(events []archive.Event) (packed [][]byte, bytes int) {
	packed = make([][]byte, len(events))
	for i := range events {
		bytes += len(events[i].Body)
		if events[i].Hash != "" {
			packed[i] = db.codec.Body(events[i].Body)
		}
	}
	return packed, bytes
}

// Change changes records in one transaction; see archive.Store. The committer runs one
// change after the other, so each is alone.
func (db *DB) Change(
	ctx context.Context, account string, ids []string, _ bool,
	decide func(*archive.Group, archive.Loader) error,
) error {
	if len(ids) == 0 {
		return nil
	}

	return db.change(ctx, keysOf(account), 0, len(ids), func(f *folding) error {
		for _, id := range ids {
			if _, err := f.group.AddLoaded(f, f.account, id); err != nil {
				return err
			}
		}
		return decide(f.group, f)
	})
}

// change makes one change of an account's records durable. bytes and events are its size.
func (db *DB) change(ctx context.Context, k keys, bytes, events int, decide func(*folding) error) error {
	// Set by the change, which the committer runs, perhaps in the goroutine of another
	// caller.
	var f *folding
	err := db.commit.doMany(ctx, bytes, events, func(txn *badger.Txn) (_ []write, err error) {
		f, err = db.newFolding(txn, k, db.heldBytesMax)
		if err == nil {
			err = decide(f)
		}
		if err != nil {
			return nil, err
		}
		return f.finish()
	})
	if err != nil {
		return err
	}

	// Only now: a failed commit must not count.
	if f.erase {
		db.askErase()
	}
	db.rowsWritten(k, f.listed)
	db.packer.Add(f.account, f.group.Came(f.account))
	f.group.CountUsage(f.account)

	return nil
}

// folding loads the records of a group, which are all of one account, and makes the writes
// for what the group does to them.
type folding struct {
	db      *DB
	txn     *badger.Txn
	keys    keys
	account string
	group   *archive.Group
	counts  archive.Counts // of the account, as stored

	freed  []write // of bodies whose base goes or changes; before writes
	writes []write
	listed int  // rows among the writes
	erase  bool // what was deleted or edited must leave the files
}

func (db *DB) newFolding(txn *badger.Txn, k keys, heldMax int) (*folding, error) {
	f := &folding{db: db, txn: txn, keys: k, account: string(k[2:]), group: archive.NewGroup(heldMax, db.usage)}
	counts, err := loadCounts(txn, k)
	if err != nil {
		return nil, err
	}
	deleted, err := f.selectors()

	f.counts = counts
	f.group.Accounts[f.account] = &archive.GroupAccount{Orphans: counts.Orphans, Deleted: deleted}
	return f, err
}

// loadRecord reads a record of the group.
func (f *folding) loadRecord(r *archive.Record) (err error) {
	r.State, err = f.db.state(f.txn, f.keys, r.ID)
	if err != nil {
		return err
	}
	// Without a history it is new, unless it was deleted.
	if len(r.State.History) == 0 {
		tombstone, err := loadBytes(f.txn, f.keys.tombstone(r.ID))
		if err != nil {
			return err
		}
		r.Removed = tombstone != nil
	}

	return f.group.Loaded(r)
}

// Load reads records; see archive.Loader.
func (f *folding) Load(records []*archive.Record) error {
	for _, r := range records {
		if err := f.loadRecord(r); err != nil {
			return err
		}
	}
	return nil
}

// Sets reads sets; see archive.Loader.
func (f *folding) Sets(account string, keys []uuid) error {
	sets := f.group.Accounts[account]
	for _, key := range keys {
		value, err := loadBytes(f.txn, f.keys.set(key))
		if err != nil {
			return err
		}
		sets.AddSet(key, archive.DecodeSet(value))
	}
	return nil
}

// OfTraces reads the ids of traces' records; see archive.Loader.
func (f *folding) OfTraces(_ string, traces []uuid, limit int) (map[uuid][]uuid, error) {
	// One for all: each sorts what the transaction has written so far.
	it := f.txn.NewIterator(badger.IteratorOptions{Prefix: f.keys.table(tableTrace)})
	defer it.Close()

	found := make(map[uuid][]uuid)
	for _, trace := range traces {
		prefix := append(f.keys.table(tableTrace), trace[:]...)
		for it.Seek(prefix); it.ValidForPrefix(prefix) && len(found[trace]) < limit; it.Next() {
			key := it.Item().Key()
			found[trace] = append(found[trace], uuid(key[len(key)-16:]))
		}
	}
	return found, nil
}

// Pack packs a body; see archive.Loader.
func (f *folding) Pack(body []byte) []byte { return f.db.codec.Body(body) }

// Bodies reads bodies of a record's events; see archive.Loader.
func (f *folding) Bodies(r *archive.Record) (map[string]json.RawMessage, error) {
	return r.ReadBodies(func(h archive.Entry) ([]byte, error) { return f.db.loadBody(f.txn, f.keys, r.ID, h) })
}

// finish returns the writes for the records that the group changed, and for the account's
// counts.
func (f *folding) finish() ([]write, error) {
	if err := f.group.Unite(f); err != nil {
		return nil, err
	}
	f.group.Settle()
	for key, set := range f.group.Accounts[f.account].Sets {
		if set.Changed {
			f.set(f.keys.set(key), set.Encode())
		}
	}
	counts := f.counts
	for _, r := range f.group.Records {
		if !r.Changed {
			continue
		}

		var err error
		if r.Removed {
			err = f.remove(r)
		} else {
			err = f.store(r)
		}
		if err == nil {
			err = f.list(r)
		}
		if err != nil {
			return nil, err
		}

		f.place(r)
		counts.Change(r.Before, r.After)
	}

	if err := f.addRollups(); err != nil {
		return nil, err
	}
	if f.erase {
		// Asked for before the first is gone and after the last: an Erase that runs meanwhile
		// may end in between, having seen only some of them. The note in the files is for a
		// restart.
		f.db.askErase()
		f.set(eraseKey, appendTime(nil, f.db.now()))
	}
	// Read in this transaction, so they include the changes before ours in its group.
	if counts != f.counts {
		value, err := jsonscan.Marshal(counts)
		if err != nil {
			return nil, err
		}
		f.set(f.keys.count(), value)
	}

	return append(f.freed, f.writes...), nil
}

func (f *folding) set(key, value []byte) { f.writes = append(f.writes, write{key, value}) }

func (f *folding) delete(key []byte) { f.set(key, nil) }

// store writes a record's state, its bodies, and what finds it by values that its row does
// not show.
func (f *folding) store(r *archive.Record) error {
	for _, event := range r.DroppedBodies() {
		if err := f.free(r.ID, event); err != nil {
			return err
		}
		f.delete(f.keys.body(r.ID, event))
	}

	for _, body := range r.Bodies {
		f.set(f.keys.body(r.ID, body.Event), body.Bytes)
	}
	// Under the same key: the old body stays in the files until they are erased.
	for event, body := range r.Replaced {
		if err := f.free(r.ID, event); err != nil {
			return err
		}
		f.set(f.keys.body(r.ID, event), f.db.codec.Body(body))
	}
	for _, m := range r.Hidden {
		f.set(f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.ID), mark)
	}
	f.erase = f.erase || r.Erase

	return f.writeState(r)
}

// remove deletes a record's bodies, state and marks, and leaves a tombstone if it must be
// buried.
func (f *folding) remove(r *archive.Record) error {
	for _, event := range r.State.Kept() {
		if err := f.free(r.ID, event); err != nil {
			return err
		}
		f.delete(f.keys.body(r.ID, event))
	}
	if len(r.State.History) > 0 {
		f.delete(f.keys.record(r.ID))
		f.removeDeltas(r)
	}

	// The marks that lead to values its row does not show.
	if r.State.Hides() {
		for _, m := range r.State.Had() {
			f.delete(f.keys.hidden(rowcode.HashStored(m.Key, m.Value), r.ID))
		}
	}

	f.erase = true
	if r.Buried {
		f.set(f.keys.tombstone(r.ID), appendTime(nil, f.db.now()))
	}

	return nil
}

// list writes the record's row, and removes the one that it had at another place.
func (f *folding) list(r *archive.Record) error {
	place := func(f archive.Footprint) []byte {
		if !f.Listed {
			return nil
		}
		return blocks.EncodePlace(f.ListedAt, r.ID)
	}

	before, at := place(r.Before), place(r.After)
	if before != nil && !bytes.Equal(before, at) {
		hide, err := f.db.hide(f.txn, f.keys, before)
		if err != nil {
			return err
		}
		f.writes = append(f.writes, hide)
		f.listed++
	}
	if at == nil {
		return nil
	}

	// Alone in any case: if a block has an older form of the row, this one hides it.
	row, _ := r.State.Row()
	key, err := f.db.loneKey(f.txn, f.keys, at)
	f.set(key, rowcode.Encode(&row))
	f.listed++

	return err
}

// place writes the difference in the keys by which a record is found besides its row.
func (f *folding) place(r *archive.Record) {
	before, after := f.keys.places(r.ID, r.Before), f.keys.places(r.ID, r.After)
	for _, old := range before {
		if !slices.ContainsFunc(after, func(w write) bool { return bytes.Equal(w.key, old.key) }) {
			f.delete(old.key)
		}
	}
	for _, w := range after {
		same := func(old write) bool { return bytes.Equal(old.key, w.key) && bytes.Equal(old.value, w.value) }
		if !slices.ContainsFunc(before, same) {
			f.writes = append(f.writes, w)
		}
	}
}

// places returns the keys by which a record is found besides its row: by its trace, among the spans if
// it is only one, and among the orphans.
func (k keys) places(id uuid, f archive.Footprint) (places []write) {
	if f.Trace != (uuid{}) {
		places = append(places, write{k.trace(f.Trace, id), mark})
	}
	if f.Bare {
		value := mark
		if f.Tagged {
			value = tagged
		}
		places = append(places, write{k.span(blocks.EncodePlace(f.At, id)), value})
	}
	if f.Waiting.Requests > 0 {
		places = append(places, write{k.orphan(id), mark})
	}

	return places
}
