package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"promptspool/api/wire"
	"promptspool/metrics"
	"promptspool/spool/archive"
	"promptspool/spool/archive/textindex"
	"promptspool/spool/crashpoint"
	"promptspool/spool/database/accounts"
	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/database/compress"
	"promptspool/spool/database/repack"
	"promptspool/spool/disk"
)

// Config is where the database is and what it may take.
type Config struct {
	Dir    string           // created if missing, mode 0700; one process at a time may open it
	Logger *slog.Logger     // nil: slog.Default
	Now    func() time.Time // nil: time.Now; dates new accounts

	Retention archive.Retention // what Run keeps
	Usage     *metrics.Usage    // what calls used is counted in it; nil does not count

	// FreeMin is how much of the disk stays free: below it writes fail with
	// CodeUnavailable. 0 means 256 MiB, or a sixteenth of a disk of less than 4 GiB. It
	// is never less than 64 MiB.
	FreeMin int64

	// ReadAll has every file read before it is opened, not just what opening needs: the
	// last process met a block that the disk could not read. Files with such a block are
	// replaced.
	ReadAll bool
}

// DB is the database of a server: an archive.Store, a registry.Store and an auth.Store.
// It is safe for concurrent use.
type DB struct {
	*accounts.Store
	archive.RecordReader

	dir    string
	lock   *folder.Lock
	space  *freeSpace
	bdb    *badger.DB
	codec  *compress.Codec
	commit *committer
	logger *slog.Logger
	now    func() time.Time

	heldBytesMax int // see archive.HeldBytesMax
	deltaMin     int // see archive.DeltaMin

	// Packing; see pack.go. packMu guards the fields marked with it.
	packing  packing
	packMu   sync.Mutex
	unpacked map[keys]int      // packMu: rows written since the account's were packed
	packOne  sync.Mutex        // held while packing: one at a time, for its memory
	words    textindex.Builder // packOne: of the block that is packed
	packer   *repack.Packer    // of bodies
	repacked atomic.Int64      // bytes that packing bodies has left as waste
	recent   recentWords

	packingInBackground bool           // packMu: one of packers is packing rows whose writer does not wait
	packEnded           bool           // packMu: no more packers may start
	packers             sync.WaitGroup // waited for before the database is closed

	middles  sync.Map     // of the names of roll-ups, by the prefix of their keys; see rollup.go
	changing accountLocks // held while a change of an account's small values runs

	retention  archive.Retention
	usage      *metrics.Usage
	erasing    sync.Mutex   // held by Erase and Backup, which exclude each other
	eraseAsked atomic.Int64 // when something was deleted that may still be in the files, in ns; 0 means nothing

	unreadable atomic.Int64 // bytes that the disk could not read

	// Caches of what is in the database, filled on first use. Only changes use them, and
	// those run one at a time.
	selectors map[keys]map[[16]byte]time.Time // metadata values deleted from the accounts
	firsts    map[keys][]byte                 // places of the accounts' first blocks; nil means no block

	stop chan struct{} // closed when closing begins, so that long reads end early

	// Held for reading by every read: Badger unmaps its files under its readers when it
	// closes.
	reading   sync.RWMutex
	closed    bool // under reading
	closeOnce sync.Once
	closeErr  error
}

// valueThreshold is the size from which values go to the value log. Bodies, large rows and
// most packed states so stay out of the tables, where each would be written several times,
// and count little towards the limit of a transaction. A body that is packed against another
// is mostly smaller, as is the list of such: one log is written for them, not two.
const valueThreshold = 640

// badgerOptions returns options for a small server. Two caches, the memtables and the
// builders of tables bound the memory, however large the database is; the mappings of its
// files come on top.
//
// A transaction may hold 15 % of MemTableSize, 5 MB. The largest batch, 1,000 events,
// needs 1,000 states, rows and bodies of at most 1 KiB each, besides what goes to the value
// log. No value exceeds ValueLogFileSize: see archive.RecordBytesMax.
//
// A compaction has up to five builders at work and eight more being written, each some
// six times the size of a table. So tables are small on every level: Badger would make
// them four times as large at the bottom of a large database.
func badgerOptions(dir string, log badger.Logger) badger.Options {
	o := badger.DefaultOptions(dir).
		WithLogger(log).
		WithSyncWrites(true).
		WithDetectConflicts(false). // the committer is the only writer
		WithMetricsEnabled(false).
		WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithMemTableSize(32 << 20).
		WithNumMemtables(1).
		WithBaseTableSize(2 << 20).
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(256 << 20).
		WithCompression(options.Snappy).
		WithBlockCacheSize(16 << 20).
		WithIndexCacheSize(16 << 20).
		WithNumCompactors(2)
	// There is no method for it.
	o.TableSizeMultiplier = 1

	return o
}

// Open opens the database in c.Dir, or creates one in an empty folder. It fails rather
// than start afresh in a folder that it cannot read completely. The caller closes the DB.
func Open(c Config) (*DB, error) {
	if c.Dir == "" {
		return nil, errors.New("open the database: no folder given")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}

	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the database's folder: %w", err)
	}

	// Before the lock: without the space to open, the process would die of SIGBUS in Badger.
	space := &freeSpace{dir: c.Dir, freeMin: c.FreeMin, logger: c.Logger}
	if err := space.canOpen(); err != nil {
		return nil, fmt.Errorf("open the database in %s: %w", c.Dir, err)
	}

	// Files are removed and replaced before Badger opens, so the folder must be ours.
	lock, err := folder.Acquire(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the database in %s: %w", c.Dir, err)
	}

	if disk.MapWarning != "" {
		c.Logger.Warn(disk.MapWarning+"; keep it on Linux, or in PostgreSQL, if that matters", "dir", c.Dir)
	}

	db, err := openLocked(c, lock, space)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return db, nil
}

// openLocked is Open for a folder that is locked.
func openLocked(c Config, lock *folder.Lock, space *freeSpace) (*DB, error) {
	format, err := folder.Prepare(c.Dir)
	if err != nil {
		return nil, err
	}

	codec, err := compress.New(workers)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}

	// Badger logs while it opens, and one of its messages is a failed fsync.
	h := newHealth()
	bdb, lost, err := folder.Open(badgerOptions(c.Dir, h.logOf(c.Logger)), c.Logger, c.ReadAll)
	if err != nil {
		return nil, err
	}

	db := &DB{
		dir:    c.Dir,
		lock:   lock,
		space:  space,
		bdb:    bdb,
		codec:  codec,
		commit: newCommitter(lock, space, bdb, h, c.Logger),
		logger: c.Logger,
		now:    c.Now,

		heldBytesMax: archive.HeldBytesMax,
		deltaMin:     archive.DeltaMin,

		packing:   packingDefault,
		unpacked:  make(map[keys]int),
		changing:  accountLocks{seed: maphash.MakeSeed()},
		retention: c.Retention,
		usage:     c.Usage,

		selectors: make(map[keys]map[[16]byte]time.Time),
		firsts:    make(map[keys][]byte),
		stop:      make(chan struct{}),
	}

	db.commit.undone = func() {
		clear(db.selectors)
		clear(db.firsts)
	}

	// The tests replace db.now after Open, so it is looked up with each call.
	db.Store = accounts.New(smallValues{db}, func() time.Time { return db.now() })
	db.RecordReader = db.readRecord
	db.packer = repack.NewPacker(db, codec, c.Logger, func() time.Time { return db.now() })
	db.unreadable.Add(lost)

	err = db.recallErase()
	// Before anything of the new format is written.
	if err == nil && format < folder.Format {
		err = db.takeStep(format)
	}
	if err != nil && h.fault() != nil {
		// Badger may hold locks, and Close would wait for them.
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(err, bdb.Close())
	}

	return db, nil
}

// takeStep gives the folder the format of this version. Nothing else changes: what was written
// before is read as it is, and renewed in the background.
func (db *DB) takeStep(from int) error {
	db.logger.Info("the database takes the format of this version; earlier versions refuse it from now on",
		"folder", db.dir, "from", from, "to", folder.Format)
	crashpoint.Reach(crashpoint.StepBegun)
	err := folder.WriteFormat(db.dir)
	crashpoint.Reach(crashpoint.StepWritten)

	return err
}

// Close fails waiting writes, lets the running commit and reads finish, and closes the
// files. Every call after it fails with CodeUnavailable. Closing again returns the first
// result.
func (db *DB) Close() error {
	db.closeOnce.Do(func() {
		close(db.stop)

		// No packer may start once we wait for them.
		db.packMu.Lock()
		db.packEnded = true
		db.packMu.Unlock()
		db.packers.Wait()

		// Writers first, then readers: a change that is being committed reads as well.
		db.commit.Close(errClosed())
		db.reading.Lock()
		db.closed = true
		db.reading.Unlock()
		db.commit.ahead.close()
		db.closeErr = db.closeFiles()
	})

	return db.closeErr
}

// closePatience is how long closing a database that failed may take.
var closePatience = 2 * time.Second // a variable for tests

// closeFiles closes Badger. After a failed commit, or in a folder that is gone, it does
// not wait long, because Badger tries forever to write its memtable to the bad disk. Then
// it leaves the same as a crash, and the next Open reads what is there.
func (db *DB) closeFiles() error {
	// Closing writes the memtable, and must not do so into a folder that is lost.
	if err := db.lock.Present(); err != nil {
		db.commit.health.fail(err)
	}

	if db.commit.health.fault() == nil && !db.space.canClose() {
		db.logger.Warn("stopping without writing the database's tables: the disk has no space for them. "+
			"The next start writes them, and needs space", "folder", db.dir)
		// The lock stays: Badger may still write.
		return nil
	}

	if db.commit.health.fault() == nil {
		return errors.Join(db.bdb.Close(), db.lock.Release())
	}

	// Buffered, so that a Close that ends after all does not leak its goroutine.
	closed := make(chan error, 1)
	go func() { closed <- db.bdb.Close() }()

	select {
	case err := <-closed:
		return errors.Join(err, db.lock.Release())
	case <-time.After(closePatience):
		db.logger.Error("the database cannot be closed on this disk and is left as a crash would leave it")
		// The lock stays: Badger may still write.
		return nil
	}
}

// How often Run drops and erases, and checks the folder; and which share of a value log
// must be waste for it to be rewritten.
const (
	retainEvery  = 10 * time.Minute
	presentEvery = time.Second
	collectShare = 0.5
)

// Run maintains the database until ctx ends, and returns nil. It renews what an earlier version
// wrote, drops records beyond the retention, erases deleted ones and returns disk space. Every
// second it checks that the folder is still there; see Failed.
func (db *DB) Run(ctx context.Context) error {
	var renewing sync.Mutex
	// Waits for what is still renewed.
	defer renewing.Lock()

	var packing sync.WaitGroup
	defer packing.Wait()
	packing.Go(func() { db.packer.Run(ctx) })

	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	look := time.NewTicker(presentEvery)
	defer look.Stop()

	// Zero, so that a server that restarts often still drops what is too old.
	last := time.Time{}
	for {
		if now := time.Now(); now.Sub(last) >= retainEvery {
			last = now
			db.tidy(ctx)
			// In the background: the first time after an upgrade takes minutes, and all others nothing.
			if renewing.TryLock() {
				go func() {
					defer renewing.Unlock()
					db.renew(ctx)
				}()
			}
		}

		if db.eraseDue() {
			db.failed(ctx, db.Erase(ctx), "deleted records could not be erased from the files; retrying")
		}

		// Until the next minute, only the folder is looked at.
		for due := false; !due; {
			select {
			case <-ctx.Done():
				return nil
			case <-look.C:
				if err := db.lock.Present(); err != nil {
					db.commit.health.fail(err)
				}
			case <-tick.C:
				due = true
			}
		}
	}
}

// renew gives rows the columns, and blocks the form, that they lack because an earlier version
// wrote them.
func (db *DB) renew(ctx context.Context) {
	// First what searches for words wait for most.
	err := db.packAll(ctx, (*packing).old)
	if err == nil {
		err = archive.Renew(ctx, db, db.logger)
	}
	if err == nil {
		err = db.dropOld(ctx)
	}
	db.failed(ctx, err, "what an earlier version wrote could not be renewed; retrying")
}

// failed logs why a part of the maintenance failed, unless that is because it has to end.
func (db *DB) failed(ctx context.Context, err error, what string) {
	if err != nil && ctx.Err() == nil {
		db.logger.Error(what, "error", err)
	}
}

// tidy drops what is beyond the retention, and returns the disk space of what is gone.
func (db *DB) tidy(ctx context.Context) {
	now := db.now()
	dropped, err := archive.Retain(ctx, db, db.retention, now)
	db.failed(ctx, err, "records beyond the retention could not be deleted; retrying")
	if dropped > 0 {
		db.logger.Info("records beyond the retention were deleted", "records", dropped)
	}
	db.failed(ctx, db.TrimAudit(ctx, now.Add(-wire.AuditAge), now.Add(-wire.AuditFresh), wire.AuditMost),
		"old entries of the audit log could not be deleted; retrying")

	db.failed(ctx, db.packAll(ctx, (*packing).crowded),
		"rows could not be packed into blocks; searches still work, but slower")

	// Also where nothing was dropped now: deletions leave waste as well.
	err = db.reclaim(ctx)
	if err == nil {
		err = db.collect(ctx, collectShare)
	}
	db.failed(ctx, err, "disk space of the database could not be reclaimed; retrying")
}

// view runs a read on a snapshot of the database.
func (db *DB) view(fn func(txn *badger.Txn) error) error {
	db.reading.RLock()
	defer db.reading.RUnlock()

	// Under the lock, because reopen replaces db.bdb.
	if db.closed {
		return errClosed()
	}
	return db.commit.health.guard(db.dir, func() error { return db.bdb.View(fn) })
}

// viewOf is view for a read of one account, which gets its keys.
func (db *DB) viewOf(account string, fn func(txn *badger.Txn, k keys) error) error {
	return db.view(func(txn *badger.Txn) error { return fn(txn, keysOf(account)) })
}

// stopped returns why a long read should end, or nil.
func (db *DB) stopped(ctx context.Context) error {
	// Asked often, so it must not block.
	select {
	case <-ctx.Done():
		return wire.Unavailable(0, "The request ended before it had its answer: %w", ctx.Err())
	case <-db.stop:
		return errClosed()
	default:
		return nil
	}
}
