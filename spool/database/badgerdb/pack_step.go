package badgerdb

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/badgerdb/blocks"
)

// packStep packs a part of an account's list in one transaction. Reading the rows and
// building the blocks takes long, so it is done while others write; settle then adds what
// they wrote.
type packStep struct {
	writes []write // of blocks, new ones and removed ones
	place  []byte  // where the first new block begins; nil if there is none
	newest []lone  // rows for the blocks that come before the present first block
	late   []lone  // rows for the blocks within a block's part of the list

	from, to []byte // the part of the list; to is nil at its end
	first    []byte // the first block before the step if the part begins before it; nil without one

	more bool // there may be more to pack in the same span
	left bool // rows were too heavy to be packed together, and are in other spans now
}

// addBlock adds a block of rows, of which some were in another block before.
func (db *DB) addBlock(
	ctx context.Context, txn *badger.Txn, k keys, step *packStep, rows []blocks.Placed, before packed,
) error {
	if step.place == nil {
		step.place = rows[0].Place[:]
	}
	words, err := db.writeWords(ctx, txn, k, rows, before)
	if err != nil {
		return err
	}
	step.writes = append(append(step.writes, writeBlock(db.codec, k, rows[0].Place[:], rows)...), words...)

	return nil
}

// packTries is how often a step is prepared during other writes before these have to
// wait.
const packTries = 3

// packStep packs a span, or one block off its old end, and commits that.
func (db *DB) packStep(ctx context.Context, k keys, s span) (step packStep, err error) {
	for range packTries {
		step, err = db.preparePack(ctx, k, s)
		if err != nil {
			return step, err
		}

		if settled, err := db.finishPack(k, &step); err != nil || settled {
			return step, err
		}
	}

	// Others touched the part each time. Now they wait.
	err = db.exclusively(func(txn *badger.Txn) (writes []write, err error) {
		step, err = db.packSpan(ctx, txn, k, s)
		if err == nil {
			writes, _, err = db.settle(txn, k, &step, nil)
		}
		return writes, err
	})

	return step, err
}

// preparePack reads a span and builds its blocks. From the snapshot that it reads, the
// committer watches which rows of the account are written.
func (db *DB) preparePack(ctx context.Context, k keys, s span) (step packStep, err error) {
	c := db.commit
	release, ok := c.Hold(db.stop)
	if !ok {
		return step, errClosed()
	}

	// Begun while there is no commit, so that the watch misses no write after the
	// snapshot. Once the snapshot is taken, others may commit again.
	c.watch = &watch{keys: k}
	handOn := sync.OnceFunc(release)
	defer handOn()

	err = db.view(func(txn *badger.Txn) error {
		handOn()
		step, err = db.packSpan(ctx, txn, k, s)
		return err
	})

	return step, err
}

// finishPack commits a step that was prepared. settled is false if it must be prepared
// again.
func (db *DB) finishPack(k keys, step *packStep) (settled bool, err error) {
	err = db.exclusively(func(txn *badger.Txn) (writes []write, err error) {
		watch := db.commit.watch
		db.commit.watch = nil

		if !watch.lost {
			writes, settled, err = db.settle(txn, k, step, watch.touched)
		}

		return writes, err
	})
	return settled, err
}

// settle returns the writes of a step. Rows that were touched since it was prepared stand
// alone and hide their old form in a block. settled is false if the step must be prepared
// again.
func (db *DB) settle(
	txn *badger.Txn, k keys, step *packStep, touched map[blocks.Place]bool,
) (writes []write, settled bool, err error) {
	if len(step.writes) == 0 && len(step.newest) == 0 {
		// There was nothing to pack.
		return nil, true, nil
	}

	// The first block may be another one from now on.
	delete(db.firsts, k)
	writes = step.writes
	for _, l := range step.newest {
		writes = append(writes, write{key: k.newest(l.place[:])})
	}
	for _, l := range step.late {
		writes = append(writes, write{key: k.late(l.place[:])})
	}

	// These come after the removals above: the last write of a key counts.
	for place := range touched {
		at := place[:]
		if bytes.Compare(at, step.from) < 0 || step.to != nil && bytes.Compare(at, step.to) >= 0 {
			continue
		}
		if step.place == nil || bytes.Compare(at, step.place) < 0 {
			// It would belong to another block, or to none.
			return nil, false, nil
		}

		stood := k.late(at)

		// Before the old first block, its row was in the other table. Now a block owns
		// it.
		if step.newest != nil && (step.first == nil || bytes.Compare(at, step.first) < 0) {
			stood = k.newest(at)
			writes = append(writes, write{key: stood})
		}

		row, err := loadBytes(txn, stood)
		if err != nil {
			return nil, false, err
		}
		if row == nil {
			// Deleted: it may be in the block, and hides nothing if it is not.
			row = goneRow
		}
		writes = append(writes, write{k.late(at), row})
	}
	return writes, true, nil
}

// watch notes which rows of an account that stand alone are written. Only the goroutine
// that is committing uses it.
type watch struct {
	keys    keys
	touched map[blocks.Place]bool
	lost    bool // there were more than it can note
}

// touchedMax bounds the rows that a watch notes, and with them its memory and the time to
// settle.
const touchedMax = 10_000

// note records a written key if it is that of a row.
func (w *watch) note(key []byte) {
	n := len(w.keys)
	if len(key) != n+1+blocks.PlaceBytes || string(key[:n]) != string(w.keys) ||
		key[n] != tableTime && key[n] != tableLate {
		return
	}

	// The step will be prepared again, or at last while others wait.
	if len(w.touched) == touchedMax {
		w.lost = true
		return
	}

	if w.touched == nil {
		w.touched = make(map[blocks.Place]bool)
	}
	w.touched[blocks.Place(key[n+1:])] = true
}

// exclusively runs a change while no other write does, and commits it by itself. The
// change only reads from its transaction.
func (db *DB) exclusively(change func(txn *badger.Txn) ([]write, error)) error {
	c := db.commit
	release, ok := c.Hold(db.stop)
	if !ok {
		return errClosed()
	}
	defer release()

	if err := c.health.fault(); err != nil {
		return err
	}

	var writes []write
	err := db.view(func(txn *badger.Txn) (err error) {
		writes, err = change(txn)
		return err
	})
	if err != nil || len(writes) == 0 {
		return err
	}

	t := c.begin()
	defer func() { t.txn.Discard() }()

	// In one transaction or not at all: half of a block would show rows twice, or never.
	if !t.fits(writes) {
		return errors.New("the rows of a block do not fit into one transaction of the database")
	}

	t.add(writes)

	return c.end(t)
}
