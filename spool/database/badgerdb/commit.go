package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/rawlog"
)

// Bounds of what shares one transaction. They limit its memory, and how long its first
// change waits. One change alone may be larger.
const (
	groupBytesMax  = 16 << 20 // of bodies
	groupEventsMax = 2000
)

// keyBytesMax is below Badger's own limit. Names in keys are bounded far below it where
// they are accepted.
const keyBytesMax = 60_000

// change computes what to write from what txn shows, including the changes before it in
// the same group. It writes nothing itself, so that a failed change leaves no trace in
// the group. It must not call the committer.
type change func(txn *badger.Txn) ([]write, error)

// write sets a key, or deletes it if value is nil.
type write struct{ key, value []byte }

// committer is the only writer of the database; see archive.Committer.
type committer struct {
	*archive.Committer[change]

	lock   *folder.Lock
	space  *freeSpace
	bdb    *badger.DB
	health *health
	logger *slog.Logger
	spare  spare
	ahead  ahead
	undone func() // forgets what changes remember of a transaction that is not committed
	watch  *watch // of rows that are being packed, or nil; owned by the goroutine that is committing
}

type waiting = archive.Waiting[change]

func newCommitter(lock *folder.Lock, space *freeSpace, bdb *badger.DB, h *health, logger *slog.Logger) *committer {
	c := &committer{
		lock:   lock,
		space:  space,
		bdb:    bdb,
		health: h,
		logger: logger,
		spare:  spareOf(bdb),
		ahead:  ahead{bdb.Opts().Dir, newest{format: "%06d.vlog"}, newest{format: "%05d.mem"}},
		undone: func() {},
	}
	// One lane: Badger looks for no conflicts, because there is no other writer.
	c.Committer = archive.NewCommitter(1, groupBytesMax, groupEventsMax, c.commitGroup)

	return c
}

// do makes a change of a few keys durable. bytes is the size of its bodies. After an
// error nothing of the change is in the database, unless the code is CodeUnavailable:
// then it may be, after a restart.
func (c *committer) do(ctx context.Context, bytes int, change change) error {
	return c.doMany(ctx, bytes, 1, change)
}

// doMany is do for a change of several events or records.
func (c *committer) doMany(ctx context.Context, bytes, events int, change change) error {
	return c.Do(ctx, &waiting{Change: change, Bytes: bytes, Events: events})
}

// commitGroup runs the changes of a group, each on top of those before it, and commits
// them in as few transactions as Badger allows.
func (c *committer) commitGroup(_ context.Context, _ int, group []*waiting) {
	t := c.begin()
	// Of the last t, whichever that is.
	defer func() { t.txn.Discard() }()

	// Asked once for the group; Badger may take more while it lasts, which freeMin allows
	// for.
	disk := c.space.admit()
	for _, w := range group {
		if err := disk.refusal(w.Bytes); err != nil {
			w.Finish(err)
			continue
		}

		// The change reads the database, and a disk that cannot read must not end the
		// process.
		var writes []write
		err := c.health.guard(c.lock.Path(), func() (err error) {
			writes, err = w.Change(t.txn)
			return err
		})
		if err != nil {
			w.Finish(err)
			continue
		}

		if !t.fits(writes) {
			// The writes stay valid in the next transaction: there is no other writer in
			// between. But what they follow must be there.
			err := c.end(t)
			t = c.begin()
			if err != nil {
				w.Finish(err)
				continue
			}
		}
		if !t.fits(writes) {
			w.Finish(wire.Errorf(wire.CodeTooLarge,
				"The write does not fit into one transaction of the database. Send less at a time."))
			continue
		}

		t.waiting = append(t.waiting, w)
		t.add(writes)
	}

	c.end(t)
}

// end commits a transaction and answers everyone waiting for it. Changes that wrote
// nothing wait too: what they saw may come from a change before theirs, which must be
// durable first.
func (c *committer) end(t *transaction) error {
	defer t.txn.Discard()

	// After a failed commit nothing may be written: see health.
	err := t.err
	if err == nil {
		err = c.health.fault()
	}
	if err == nil && t.count > 0 {
		// With Badger's own mark.
		err = c.ahead.reserve(t.held+entryBytes*(t.count+1), t.bytes+entryBytes)
	}
	if err == nil && t.count > 0 {
		err = t.txn.Commit()

		// The fsync may have been of files that are no longer in the folder.
		if err == nil {
			err = c.lock.Present()
		}
		if err != nil {
			c.health.fail(err)

			c.logger.Error("a commit failed; the database takes no more writes until it is reopened", "error", err)
		}

		// Asked in any case: Badger only logs a failed fsync of its value log, and
		// reports success.
		err = c.health.fault()
	}

	if err != nil {
		c.undone()
	}
	// After each commit: Badger builds tables meanwhile, and keeps their memory.
	c.spare.release()

	for _, w := range t.waiting {
		w.Finish(err)
	}

	return err
}

// transaction is one Badger transaction being filled, with a count of what Badger allows
// in one.
type transaction struct {
	txn     *badger.Txn
	waiting []*waiting

	count    int64
	countMax int64
	bytes    int64 // as Badger counts them: see write.cost
	bytesMax int64
	held     int64 // of keys and values, in memory

	watch *watch
	err   error // of add: the transaction cannot be committed
}

func (c *committer) begin() *transaction {
	return &transaction{
		txn:      c.bdb.NewTransaction(true),
		watch:    c.watch,
		countMax: c.bdb.MaxBatchCount(),
		bytesMax: c.bdb.MaxBatchSize(),
	}
}

// cost is at least what Badger counts for a write. A value counts if it stays out of the
// value log, otherwise only the pointer to it.
func (w write) cost() int64 {
	if len(w.value) < valueThreshold {
		return int64(len(w.key) + len(w.value) + entryBytes)
	}
	return int64(len(w.key) + entryBytes)
}

// entryBytes is at least what Badger writes of an entry besides its key and value: version,
// metadata, pointer and checksum.
const entryBytes = 40

// fits reports whether the transaction has space for writes.
func (t *transaction) fits(writes []write) bool {
	// One more: Badger's own mark at the end.
	count, bytes, held := t.count+1, t.bytes, t.held

	for _, w := range writes {
		// Badger would fail the whole transaction for it.
		if len(w.key) > keyBytesMax {
			return false
		}

		count++
		bytes += w.cost()
		held += int64(len(w.key) + len(w.value))
	}

	if t.held > 0 && held > groupBytesMax {
		// It fits into its own transaction.
		return false
	}

	return count < t.countMax && bytes < t.bytesMax
}

// add puts writes into the transaction. end reports its errors.
func (t *transaction) add(writes []write) {
	for _, write := range writes {
		var err error
		if write.value == nil {
			err = t.txn.Delete(write.key)
		} else {
			err = t.txn.Set(write.key, write.value)
		}
		t.err = errors.Join(t.err, err)

		// Rows written now are missing from the blocks that are being built meanwhile.
		if t.watch != nil {
			t.watch.note(write.key)
		}

		t.count++
		t.bytes += write.cost()
		t.held += int64(len(write.key) + len(write.value))
	}
}

// retryAfter is when a caller may retry while the database takes no writes.
const retryAfter = 5 * time.Second

// health remembers the first failed commit. After one, the database takes no more writes:
//
//   - Linux reports a failed fsync once and may drop the pages. A later fsync that succeeds proves
//     nothing about the earlier writes.
//   - A commit that failed halfway may show in memory what is not on disk.
//
// Opening the database again reads what is there.
type health struct {
	mu     sync.Mutex
	err    error      // guarded by mu
	failed chan error // gets one error
}

func newHealth() *health { return &health{failed: make(chan error, 1)} }

// fail notes a failed commit, if it is the first.
func (h *health) fail(err error) {
	h.end(err, fmt.Errorf("a write to the database could not be made durable: %w", err))
}

// end notes the first error after which nothing more is written, and delivers report for
// it.
func (h *health) end(err, report error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	// The first only: failed has space for one, and later ones follow from it.
	if h.err == nil {
		h.err = err
		h.failed <- report
	}
}

// guard calls fn, which reads the database. If the disk cannot read a block under it, the
// process must end: Badger may hold locks, and only opening replaces the file. It
// protects the calling goroutine; a fault in one of Badger's own ends the process by
// itself.
func (h *health) guard(dir string, fn func() error) error {
	err := rawlog.Guard(dir, fn)
	if fault := (*rawlog.FaultError)(nil); errors.As(err, &fault) {
		h.end(err, err)

		e := wire.Unavailable(retryAfter, "The disk cannot read a part of the archive. "+
			"Start the server again, or run `promptspool archive check` while it is stopped: "+
			"both leave out what cannot be read, and report what it was.")
		e.Cause = err

		return e
	}
	return err
}

// Failed delivers one error after a commit has failed. The process must end then: only a
// new start can find out what is on disk.
func (db *DB) Failed() <-chan error { return db.commit.health.failed }

// fault returns the error for every write from now on, or nil.
func (h *health) fault() error {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.err == nil {
		return nil
	}

	e := wire.Unavailable(retryAfter, "The server could not write to its disk and takes no more writes. "+
		"Check the disk, then restart the server.")
	e.Cause = h.err
	return e
}

// logOf passes Badger's log to ours, and ends writing with the failure that is only logged.
func (h *health) logOf(logger *slog.Logger) rawlog.Log {
	return rawlog.Log{Logger: logger, Failure: failedSync, Fail: h.fail}
}

// errClosed is for every call after Close has begun.
func errClosed() error {
	return wire.Unavailable(retryAfter, "The server's database is closed; the server is stopping.")
}

// failedSync begins the line that Badger 4.9.6 logs when it cannot sync its value log.
// See value.go, valueLog.write. Nothing else shows the failure: the commit succeeds.
const failedSync = "Error while curlf sync"
