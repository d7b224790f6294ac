package badgerdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/disk"
)

// Deleted records can no longer be read from the moment of the deletion. Their bytes
// leave the files when these have been rewritten.
const (
	eraseWithin = time.Hour       // after a deletion
	eraseDelay  = 5 * time.Minute // deletions that follow each other are erased together
)

// nowhere begins no stored key. Dropping all keys that begin with it makes Badger write
// out what is in memory and compact the first level.
var nowhere = []byte{0xff, 0xff}

// Erase rewrites the files that hold bytes of deleted records, so that none are left when
// it returns. It takes a while: all tables are compacted, and every value log with a
// deleted value is copied. Writes and reads continue during most of it.
func (db *DB) Erase(ctx context.Context) error {
	db.erasing.Lock()
	defer db.erasing.Unlock()

	asked := db.eraseBegins()
	if err := db.eraseFiles(ctx); err != nil {
		if asked != 0 {
			db.eraseAsked.Store(asked)
		}
		return err
	}

	return db.eraseEnds(asked)
}

// eraseBegins returns when an erasure was asked for, 0 if it was not. Only what was deleted
// until now is certainly gone at the end: what is deleted from now on asks again.
func (db *DB) eraseBegins() (asked int64) { return db.eraseAsked.Swap(0) }

// eraseEnds notes in the files that everything is erased, unless more was deleted meanwhile.
func (db *DB) eraseEnds(asked int64) error {
	if asked == 0 {
		// Nothing to note.
		return nil
	}

	return db.exclusively(func(*badger.Txn) ([]write, error) {
		if db.eraseAsked.Load() != 0 {
			// A deletion came in between: its key must stay.
			return nil, nil
		}
		return []write{{key: eraseKey}}, nil
	})
}

// eraseFiles rewrites the files that hold bytes of deleted records.
func (db *DB) eraseFiles(ctx context.Context) error {
	if err := db.packGone(ctx); err != nil {
		return err
	}

	// Twice: copying a value log leaves pointers to the old one, which are old values
	// too.
	for range 2 {
		if err := db.rewrite(ctx, 1e-9); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// rewrite rewrites the tables, and the value logs of which more than a share is waste, those that were being
// written included.
func (db *DB) rewrite(ctx context.Context, share float64) error {
	err := db.reopen()
	if err == nil {
		err = db.compact(db.hold, nil)
	}
	if err == nil {
		err = db.collect(ctx, share)
	}
	return err
}

// Bodies that were packed against others have left waste in value logs that Badger still writes to, or
// has not counted. Once that is so much, and such a share of the folder, the files are changed for it.
const (
	reclaimLeast = 16 << 20
	reclaimShare = 4 // a fourth
)

// reclaim gives back the waste of packed bodies, if there is enough.
func (db *DB) reclaim(ctx context.Context) error {
	waste := db.repacked.Load()
	if waste < max(reclaimLeast, disk.Used(db.dir, "")/reclaimShare) {
		return nil
	}
	db.erasing.Lock()
	defer db.erasing.Unlock()

	db.repacked.Add(-waste)

	return db.rewrite(ctx, collectShare)
}

// recallErase finds out after a restart whether something was still to be erased.
func (db *DB) recallErase() error {
	return db.view(func(txn *badger.Txn) error {
		raw, err := loadBytes(txn, eraseKey)
		if raw != nil {
			db.askErase()
		}
		return err
	})
}

// packGone rewrites every block with a deleted row.
func (db *DB) packGone(ctx context.Context) error {
	gone := func(s span) bool { return s.place != nil && s.lone > 0 }
	accounts, err := db.accountKeys()
	for k := range accounts {
		if err == nil {
			err = db.packChosen(ctx, k, func(spans []span) []span {
				return slices.DeleteFunc(spans, func(s span) bool { return !gone(s) })
			})
		}
	}
	return err
}

// Accounts returns the ids of all accounts that have any data.
func (db *DB) Accounts(context.Context) (ids []string, err error) {
	accounts, err := db.accountKeys()
	for k := range accounts {
		ids = append(ids, string(k[2:]))
	}
	return ids, err
}

// accountKeys returns the keys of all accounts that have any records.
func (db *DB) accountKeys() (accounts map[keys]bool, err error) {
	accounts = make(map[keys]bool)
	err = db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			accounts[k] = true
			return nil
		})
	})
	return accounts, err
}

// eachAccount calls fn for each account that has any records. It reads one key of each.
func eachAccount(txn *badger.Txn, fn func(keys) error) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{ofAccount}})
	defer it.Close()

	for it.Rewind(); it.Valid(); {
		k, _, _ := accountOf(it.Item().KeyCopy(nil))
		if err := fn(k); err != nil {
			return err
		}

		// Past all its tables: no table is 0xff.
		it.Seek(append([]byte(k), 0xff))
	}
	return nil
}

// reopen closes Badger's files and opens them again, so that no deleted bytes remain in
// memory, in a write-ahead log or in the value log being written. Reads and writes wait
// meanwhile.
func (db *DB) reopen() error {
	release, err := db.lockAlone()
	if err != nil {
		return err
	}
	defer release()
	defer db.reading.Unlock()

	if db.closed {
		return errClosed()
	}

	// It must not be used once its database is closed.
	db.commit.spare = spare{}
	db.commit.ahead.close()
	err = db.bdb.Close()
	if err == nil {
		var bdb *badger.DB
		var lost int64
		bdb, lost, err = folder.Open(db.bdb.Opts(), db.logger, false)
		if err == nil {
			db.unreadable.Add(lost)

			db.bdb, db.commit.bdb, db.commit.spare = bdb, bdb, spareOf(bdb)

			return nil
		}
	}

	// Closed and not open again: only a new start can find out what is on the disk.
	err = fmt.Errorf("reopen the database: %w", err)
	db.commit.health.fail(err)
	// There is nothing left to read from.
	db.closed = true

	return err
}

// alonePatience is how long running reads may delay a reopening before new reads have to
// wait.
const alonePatience = time.Minute

// lockAlone returns once there are no reads or commits, and keeps it so until release is
// called and db.reading is unlocked. A read may take seconds. So that no caller queues
// behind one, it tries again and again before it insists.
func (db *DB) lockAlone() (release func(), err error) {
	begun := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()

	for {
		// Only with the turn to commit: a commit must not meet files that are being
		// closed.
		release, ok := db.commit.Hold(db.stop)
		if !ok {
			return nil, errClosed()
		}

		if db.reading.TryLock() {
			return release, nil
		}
		if time.Since(begun) > alonePatience {
			db.reading.Lock()
			return release, nil
		}

		release()
		<-tick.C
	}
}

// holding takes the turn to commit, until release is called.
type holding func() (release func(), ok bool)

func (db *DB) hold() (release func(), ok bool) { return db.commit.Hold(db.stop) }

// held is for a caller that has the turn.
func held() (release func(), ok bool) { return func() {}, true }

// compact merges all levels of tables, so that no older version of any key remains. Where a read
// kept one, the next compact needs its key: with nothing new above it, a table stays as it is.
func (db *DB) compact(hold holding, outlived [][]byte) error {
	// Badger fails writes while it drops keys.
	release, ok := hold()
	if !ok {
		return errClosed()
	}

	db.reading.RLock()
	defer db.reading.RUnlock()
	if db.closed {
		release()
		return errClosed()
	}

	// Badger does nothing for a prefix that no key has.
	err := db.bdb.Update(func(txn *badger.Txn) error {
		err := txn.Set(nowhere, []byte("x"))
		for _, key := range outlived {
			// Deleted still, so deleting it again changes nothing.
			if _, e := txn.Get(key); errors.Is(e, badger.ErrKeyNotFound) {
				err = errors.Join(err, txn.Delete(key))
			}
		}
		return err
	})
	if err == nil {
		err = db.bdb.DropPrefix(nowhere)
	}
	release()

	if err == nil {
		// Writes may continue again: merging levels does not stop them.
		err = db.bdb.Flatten(1)
	}
	if err != nil {
		return fmt.Errorf("compact the database: %w", err)
	}
	return nil
}

// collect rewrites each value log of which more than a share is waste, until there is
// none.
func (db *DB) collect(ctx context.Context, share float64) error {
	var purged uint64
	for ctx.Err() == nil && db.wasteful(share) {
		// First while others write, so that mostly nothing is left to do while they wait. A step that
		// fails here fails again there, with the error.
		purged, _ = db.purge(ctx, db.hold, purged)
		// One file a round, until none has that much to give back.
		err := db.collectOne(ctx, share, purged)
		switch {
		case errors.Is(err, badger.ErrNoRewrite), errors.Is(err, badger.ErrRejected):
			return nil
		case err != nil:
			return fmt.Errorf("reclaim disk space of the database: %w", err)
		}
	}
	return ctx.Err()
}

// wasteful reports whether more than a share of the value log with the most waste is waste.
// Badger notes it in the file DISCARD: pairs of the number of a log and of bytes.
func (db *DB) wasteful(share float64) bool {
	var most uint64
	var size int64
	stats, err := os.ReadFile(filepath.Join(db.dir, "DISCARD"))
	for pair := range slices.Chunk(stats, 16) {
		if waste := binary.BigEndian.Uint64(pair[8:]); waste > most {
			log := fmt.Sprintf("%06d.vlog", binary.BigEndian.Uint64(pair))
			if info, err := os.Stat(filepath.Join(db.dir, log)); err == nil {
				most, size = waste, info.Size()
			}
		}
	}
	return err != nil || most > 0 && float64(most) >= share*float64(size)
}

// collectOne rewrites one value log, or returns badger.ErrNoRewrite. Nothing is deleted between
// the last look of purge and the last copy: writes wait.
func (db *DB) collectOne(ctx context.Context, share float64, purged uint64) error {
	release, ok := db.hold()
	if !ok {
		return badger.ErrNoRewrite
	}
	defer release()

	if _, err := db.purge(ctx, held, purged); err != nil {
		return err
	}

	// It copies what is kept, to the files that commits write to, before the old file goes.
	if !db.space.has(collectBytes) || db.commit.ahead.reserve(collectBytes, collectBytes/8) != nil {
		return badger.ErrNoRewrite
	}
	defer func() { _ = db.commit.ahead.reserve(0, 0) }()

	db.reading.RLock()
	defer db.reading.RUnlock()
	// Under the lock of readers, because it reads files that reopen would close.
	if db.closed {
		return badger.ErrNoRewrite
	}
	return db.bdb.RunValueLogGC(share)
}

// outlivedMax is how many keys fit into a transaction with certainty.
const outlivedMax = 1000

// purge merges tables until they have no value of a key deleted after the version purged, and
// returns up to which version that is so.
//
// Otherwise deleted keys would come back: when Badger rewrites a value log, it writes every
// version that a table still has once more, above the tombstone of its key. When the tombstone is
// merged with the tables below it, both it and the version there go, and the copy stays.
func (db *DB) purge(ctx context.Context, hold holding, purged uint64) (uint64, error) {
	// Once more for what others delete, or still read, meanwhile.
	for range 2 {
		outlived, until, err := db.outlived(ctx, purged)
		if err == nil && len(outlived) == 0 {
			return until, nil
		}
		if err == nil {
			err = db.compact(hold, outlived)
		}
		if err != nil {
			return purged, err
		}
	}
	return purged, errors.New("values of deleted keys are still in the tables")
}

// outlived returns keys that were deleted after a version, and of which a table still has a value
// in a value log. It looks at all versions until the one returned.
func (db *DB) outlived(ctx context.Context, after uint64) (found [][]byte, until uint64, err error) {
	err = db.view(func(txn *badger.Txn) error {
		until = txn.ReadTs()
		it := txn.NewIterator(badger.IteratorOptions{AllVersions: true, SinceTs: after})
		defer it.Close()

		var last []byte
		for it.Rewind(); it.Valid() && len(found) < outlivedMax; it.Next() {
			// The newest version of a key comes first.
			item := it.Item()
			if bytes.Equal(item.Key(), last) {
				continue
			}
			last = item.KeyCopy(last)
			if item.IsDeletedOrExpired() && inLog(txn, last) {
				found = append(found, bytes.Clone(last))
			}
		}
		return db.stopped(ctx)
	})
	return found, until, err
}

// inLog reports whether any version of a key has a value in a value log.
func inLog(txn *badger.Txn, key []byte) (found bool) {
	it := txn.NewKeyIterator(key, badger.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid() && !found; it.Next() {
		found = !it.Item().IsDeletedOrExpired() && it.Item().EstimatedSize() >= valueThreshold
	}
	return found
}

// askErase notes that something must be erased. An earlier note stays.
func (db *DB) askErase() { db.eraseAsked.CompareAndSwap(0, db.now().UnixNano()) }

// eraseDue reports whether something was deleted a while ago.
func (db *DB) eraseDue() bool {
	asked := db.eraseAsked.Load()
	return asked != 0 && db.now().Sub(time.Unix(0, asked)) >= eraseDelay
}
