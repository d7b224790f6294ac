package badgerdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/api/words"
	"promptspool/spool/archive"
	"promptspool/spool/archive/query"
	"promptspool/spool/archive/rollup"
	"promptspool/spool/archive/rowcode"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/database/badgerdb/blocks"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
)

// Check proves that the database agrees with itself:
//
//   - Every record that has its request has its row, as folding it gives, and there is no other.
//   - Every body that a history names is there, unchanged, and there is no other.
//   - The counts are right, and so are the sums of sessions, traces and users.
//   - The index of each block has every word of its rows.
//   - Templates, their ids, versions and changes belong together.
//
// Its error is the first fault. It reads everything once, as of the moment it is called,
// while reads and writes continue.
func (db *DB) Check(ctx context.Context) error {
	if err := db.Store.Check(ctx); err != nil {
		return err
	}

	filled, err := db.Filled(ctx)
	if err != nil {
		return err
	}

	return db.view(func(txn *badger.Txn) error {
		c := checker{db: db, txn: txn, filled: filled, accounts: make(map[keys]*tally)}

		// In the order of the keys: a block's head is met before the rows of tables after it.
		err := db.each(ctx, txn, []byte{ofAccount}, nil, func(key, value []byte) (bool, error) {
			return true, c.look(key, value)
		})
		if err != nil {
			return err
		}

		// After the walk: by now it is known what should exist.
		for k, t := range c.accounts {
			if err := c.rows(ctx, db, k, t); err != nil {
				return fmt.Errorf("project %q: %w", k[2:], err)
			}
			if err := t.agrees(); err != nil {
				return fmt.Errorf("project %q: %w", k[2:], err)
			}
		}
		return nil
	})
}

// checker walks over all keys of all accounts. Where one key requires another, it looks
// the other up. Keys that nothing requires are found by counting.
type checker struct {
	db       *DB
	txn      *badger.Txn
	filled   rowcode.Column // see accounts.Store.Filled
	accounts map[keys]*tally
	index    textindex.Builder
}

// tally counts an account's keys, as they are and as other keys require them.
type tally struct {
	found  map[byte]uint64
	wanted map[byte]uint64

	stored archive.Counts
	counts archive.Counts // of the records

	rollups rollup.Proof

	first []byte // the place of the first block; nil without one
	rows  int64  // in the list
}

// agrees returns how the counts of an account differ, or nil.
func (t *tally) agrees() error {
	if t.stored != t.counts {
		return fmt.Errorf("the counts say %+v, but there are %+v", t.stored, t.counts)
	}
	if t.rows != t.counts.Records {
		return fmt.Errorf("the list has %d rows of %d records", t.rows, t.counts.Records)
	}

	if t.rollups != (rollup.Proof{}) {
		return errors.New("the sums of sessions, traces and users are not those of the records")
	}

	// Each key that should exist was looked up, so equal numbers mean that no other does.
	for _, table := range []byte{tableColumn, tableWords, tableOrphan, tableBody, tableDelta,
		tableSpan, tableTrace} {
		if t.found[table] != t.wanted[table] {
			return fmt.Errorf("table %q has %d keys where %d should be", table, t.found[table], t.wanted[table])
		}
	}

	return nil
}

// look checks one key of an account, and notes what else must exist because of it.
func (c *checker) look(key, value []byte) error {
	k, table, rest := accountOf(key)
	t := c.accounts[k]
	if t == nil {
		t = &tally{found: make(map[byte]uint64), wanted: make(map[byte]uint64)}
		c.accounts[k] = t
	}

	t.found[table]++
	switch table {
	case tableRecord:
		// Joined, because deltas belong to the record that they add to.
		state, err := c.db.joinState(c.txn, k, uuid(rest), value)
		if err != nil {
			return err
		}

		t.wanted[tableDelta] += uint64(len(state.Deltas()))
		return c.record(k, t, key, &state.State)

	case tableBlock:
		head, err := blocks.DecodeHead(value)
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		if t.first == nil {
			t.first = bytes.Clone(key[len(key)-blocks.PlaceBytes:])
		}

		// All its keys but the head itself, its two marks and its index are columns.
		t.wanted[tableColumn] += uint64(len(k.removeBlock(nil, &head))) - 3 - textindex.Pages
		t.wanted[tableWords] += textindex.Pages

		b := block{txn: c.txn, codec: c.db.codec, keys: k}
		b.open(key[len(key)-blocks.PlaceBytes:], head)
		if err := c.summary(&b); err != nil {
			return err
		}
		return c.words(&b)

	case tableTime, tableLate:
		// These come after the blocks, so first is known.
		_, _, place := accountOf(key)
		late := t.first != nil && bytes.Compare(place, t.first) >= 0
		if late != (table == tableLate) && !bytes.Equal(value, mark) {
			return fmt.Errorf("key %q: the row stands alone in table %q, where no search looks", key, table)
		}

	case tableBase:
		body, err := loadBytes(c.txn, append(k.table(tableBody), rest...))
		if _, dependent := compress.BaseOf(body); err == nil && (body == nil || dependent) {
			err = fmt.Errorf("key %q: %d bodies are packed against one that is not there, or is itself",
				key, repack.Dependants(value).Len())
		}
		return err

	case tableCount:
		return decode(key, value, &t.stored)

	case tableRollup:
		return t.rollup(key, rest, value)
	}
	return nil
}

// summary proves that the summary of a block is that of its rows. One of before may say less.
func (c *checker) summary(b *block) error {
	// All columns are read on the way, so a damaged one is found here as well.
	rows := make([]wire.Row, b.Head.Rows)
	for i := range rows {
		row, err := b.Row(i, rowcode.AllColumns)
		if err != nil {
			return err
		}
		// The block lends it.
		rows[i] = rowcode.Clone(row)
	}

	stored, err := b.readSummary(nil)
	if err != nil {
		return err
	}
	if !b.Head.IsOld() && !query.IsSummary(stored, len(rows), func(i int) *wire.Row { return &rows[i] }) {
		return fmt.Errorf("key %q: the summary is not that of the block's rows", b.keys.part(b.Place, blocks.Summary))
	}
	return nil
}

// words proves that the index of a block lacks no word of its rows. One of another folding is not asked.
func (c *checker) words(b *block) error {
	if b.Head.Folding != words.Folding {
		return nil
	}
	ids, err := b.Places()
	if err != nil {
		return err
	}
	for i := range b.Head.Rows {
		at := ids.At(i)
		if late, err := loadBytes(c.txn, b.keys.late(at[:])); err != nil {
			return err
		} else if late != nil {
			// It hides the row, and may have another text.
			continue
		}
		_, id := blocks.DecodePlace(at[:])
		body, err := c.db.requestBody(c.txn, b.keys, uuid(id).String())
		if err != nil {
			return err
		}
		c.index.Add(i, query.ReadContent(context.Background(), body).Terms())
	}

	var page []byte
	for n := range textindex.Pages {
		key := b.keys.words(n, b.Place)
		page, err = readPacked(c.txn, c.db.codec, key, page)
		if err != nil {
			return err
		}
		row, err := c.index.Lacks(n, page)
		if err == nil && row >= 0 {
			err = fmt.Errorf("it lacks a word of row %d", row)
		}
		if err != nil {
			return fmt.Errorf("key %q, an index of words: %w", key, err)
		}
	}

	return nil
}

// record checks a record's key and bodies, and counts it.
func (c *checker) record(k keys, t *tally, key []byte, state *archive.State) error {
	id, ok := parseUUID(state.RequestID)
	if !ok || string(k.record(id)) != string(key) {
		return fmt.Errorf("key %q holds the record %q", key, state.RequestID)
	}

	found := state.Footprint()
	t.counts.Change(archive.Footprint{}, found)
	t.rollups.AddPart(&found.Rollups)
	bodies, err := c.db.bodies(c.txn, k, id, state, false)
	if err != nil {
		return err
	}
	t.wanted[tableBody] += uint64(len(bodies))
	if err := c.bases(k, id, state); err != nil {
		return err
	}
	for _, set := range state.Keys() {
		value, err := loadBytes(c.txn, k.set(set))
		if err != nil {
			return err
		}
		if decoded := archive.DecodeSet(value); archive.Settled(c.filled) && decoded.Lacks(set, state) {
			return fmt.Errorf("record %s: it is not in the set of key %q", state.RequestID, k.set(set))
		}
	}

	// The keys by which it is found, as a batch would write them.
	for _, w := range k.places(id, found) {
		_, table, _ := accountOf(w.key)
		t.wanted[table]++
		value, err := loadBytes(c.txn, w.key)
		if err == nil && !bytes.Equal(value, w.value) {
			err = fmt.Errorf("record %s: it has %q at key %q", state.RequestID, value, w.key)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// bases proves that what a record's bodies are packed against lists them.
func (c *checker) bases(k keys, id uuid, state *archive.State) error {
	for _, event := range state.Kept() {
		body, err := loadBytes(c.txn, k.body(id, event))
		base, dependent := compress.BaseOf(body)
		switch {
		case err != nil:
			return err
		case !dependent:
			continue
		}
		list, err := loadBytes(c.txn, k.base(base.Request, base.Event))
		if err == nil && !repack.Dependants(list).Has(id, event) {
			err = fmt.Errorf("record %s: what the body of event %s is packed against does not list it", id, event)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// rows proves that the list has exactly one row for each record, as folding it gives, in
// order.
func (c *checker) rows(ctx context.Context, db *DB, k keys, t *tally) error {
	// A search relies on the order, so it is part of the proof.
	var before *query.Position
	_, err := db.scan(ctx, c.txn, k, &query.Query{}, rowcode.AllColumns, func(row *wire.Row) (bool, error) {
		t.rows++

		place := query.PositionOf(row)
		if before != nil && before.Compare(place) >= 0 {
			return false, fmt.Errorf("the row of %s does not follow that of %s", row.RequestID, before.RequestID)
		}
		before = &place

		id, _ := parseUUID(row.RequestID)
		state, err := c.db.state(c.txn, k, id)
		if err != nil {
			return false, err
		}

		// Compared as they are stored, so that an empty list equals none.
		want, ok := state.Row()
		is := rowcode.Encode(row)
		isRow := bytes.Equal(is, rowcode.Encode(&want)) ||
			bytes.Equal(is, rowcode.EncodeFirst(c.filled, &want)) // of before
		if !ok || !want.ListTime.Equal(row.ListTime) || !want.AcceptedAt.Equal(row.AcceptedAt) || !isRow {
			return false, fmt.Errorf("record %s: its row is %+v and should be %+v", row.RequestID, row, want)
		}

		return true, nil
	})

	return err
}
