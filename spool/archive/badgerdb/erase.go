package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
)

// What is deleted can no longer be read at once; its bytes leave the files when these have been rewritten.
const (
	eraseWithin = time.Hour // after a deletion
	eraseDelay  = 5 * time.Minute
)

// nowhere is a key of its own: to drop what begins with it moves what is in memory, and the first level, down.
var nowhere = []byte{0xff, 0xff}

// Erase rewrites the files that hold bytes of what was deleted, so that none are left when it returns. It takes a while: all
// tables are compacted, and every value log with a deleted value is copied. Writes and reads go on beside most of it.
func (db *DB) Erase(ctx context.Context) error {
	db.erasing.Lock()
	defer db.erasing.Unlock()
	asked := db.eraseAsked.Load()
	if err := db.packGone(ctx); err != nil {
		return err
	}
	// Twice: a value log that is copied leaves pointers to it behind, which are old values too.
	for range 2 {
		if err := db.reopen(); err != nil {
			return err
		}
		if err := db.compact(); err != nil {
			return err
		}
		db.collect(ctx, 1e-9)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if asked == 0 || !db.eraseAsked.CompareAndSwap(asked, 0) {
		return nil // more was deleted meanwhile
	}
	return db.exclusively(func(*badger.Txn) ([]write, error) {
		if db.eraseAsked.Load() != 0 {
			return nil, nil
		}
		return []write{{key: eraseKey}}, nil
	})
}

// recallErase learns after a restart what was still to be erased.
func (db *DB) recallErase() error {
	return db.view(func(txn *badger.Txn) error {
		raw, err := loadBytes(txn, eraseKey)
		if raw != nil {
			db.askErase()
		}
		return err
	})
}

// packGone rewrites every block of which a row was deleted.
func (db *DB) packGone(ctx context.Context) error {
	accounts, err := db.accountKeys()
	for k := range accounts {
		if err == nil {
			err = db.packCrowded(ctx, k, func(s *span) bool { return s.place != nil && s.lone > 0 })
		}
	}
	return err
}

// Accounts are the ids of all accounts that have any data.
func (db *DB) Accounts() (ids []string, err error) {
	accounts, err := db.accountKeys()
	for k := range accounts {
		ids = append(ids, string(k[2:]))
	}
	return ids, err
}

// accountKeys are those of all accounts that have any.
func (db *DB) accountKeys() (accounts map[keys]bool, err error) {
	accounts = make(map[keys]bool)
	err = db.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{ofAccount}})
		defer it.Close()
		for it.Rewind(); it.Valid(); {
			k, _, _ := accountOf(it.Item().KeyCopy(nil))
			accounts[k] = true
			it.Seek(append([]byte(k), 0xff))
		}
		return nil
	})
	return accounts, err
}

// reopen closes Badger's files and opens them again, so that nothing is left in memory, in a log of it or in the value log that is
// being written. Reads and writes wait meanwhile.
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
	db.commit.spare = spare{} // it must not be touched once its database is closed
	err = db.bdb.Close()
	if err == nil {
		var bdb *badger.DB
		var lost int64
		if bdb, lost, err = openBadger(db.bdb.Opts(), db.logger, false); err == nil {
			db.unreadable.Add(lost)
			db.bdb, db.commit.bdb, db.commit.spare = bdb, bdb, spareOf(bdb)
			return nil
		}
	}
	err = fmt.Errorf("open the database again: %w", err)
	db.commit.health.fail(err)
	db.closed = true // there is nothing to read from
	return err
}

// alonePatience is how long reads may go on before new reads and writes wait for them to end.
const alonePatience = time.Minute

// lockAlone waits until nobody reads, and takes the turn to commit and the lock of reading. Reads may take seconds: so that
// nobody waits behind them, it tries again and again before it insists.
func (db *DB) lockAlone() (release func(), err error) {
	begun, tick := time.Now(), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
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

// compact merges all levels of tables, which leaves no older version of any key.
func (db *DB) compact() error {
	release, ok := db.commit.Hold(db.stop) // Badger fails writes while it drops
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
	err := db.bdb.Update(func(txn *badger.Txn) error { return txn.Set(nowhere, []byte("x")) })
	if err == nil {
		err = db.bdb.DropPrefix(nowhere)
	}
	release()
	if err == nil {
		err = db.bdb.Flatten(1)
	}
	if err != nil {
		return fmt.Errorf("compact the database: %w", err)
	}
	return nil
}

// collect rewrites value log files of which more than a share is waste, until there is none.
func (db *DB) collect(ctx context.Context, share float64) {
	for ctx.Err() == nil {
		err := db.collectOne(share)
		switch {
		case errors.Is(err, badger.ErrNoRewrite), errors.Is(err, badger.ErrRejected):
			return
		case err != nil:
			db.logger.Warn("the database could not give back disk space", "error", err)
			return
		}
	}
}

func (db *DB) collectOne(share float64) error {
	db.reading.RLock()
	defer db.reading.RUnlock()
	if db.closed || !db.room.has(collectRoom) { // it writes what is kept before the old file goes
		return badger.ErrNoRewrite
	}
	return db.bdb.RunValueLogGC(share)
}

// askErase notes that there is something to erase.
func (db *DB) askErase() { db.eraseAsked.CompareAndSwap(0, db.now().UnixNano()) }

// eraseDue says whether something was deleted a while ago, so that deletions that follow each other are erased together.
func (db *DB) eraseDue() bool {
	asked := db.eraseAsked.Load()
	return asked != 0 && db.now().Sub(time.Unix(0, asked)) >= eraseDelay
}
