package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/disk"
)

// Bounds of one transaction of a restore: memory, and what Badger accepts.
const (
	restoreBytes = 8 << 20
	restoreKeys  = 2000
)

// Restore creates the database c.Dir from a backup. c.Dir must not exist. It appears when
// Restore returns nil: complete, durable and checked. Until then everything is in a
// folder beside it, which is removed if anything goes wrong. mend may change the database
// after the check and before it appears; nil changes nothing.
func Restore(ctx context.Context, c Config, r io.Reader, mend func(context.Context, *DB) error) (b Backup, err error) {
	if _, err := os.Lstat(c.Dir); !errors.Is(err, os.ErrNotExist) {
		return b, fmt.Errorf("%s already exists; move it away, or restore elsewhere", c.Dir)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}

	// What an interrupted restore left is removed.
	temp := c.Dir + ".restoring"
	if err := errors.Join(disk.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return b, fmt.Errorf("restore: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(temp))
		}
	}()

	if b, err = fill(ctx, temp, c, r); err != nil {
		return b, err
	}

	opened := c
	opened.Dir = temp
	db, err := Open(opened)
	if err != nil {
		return b, err
	}
	if err := db.Check(ctx); err != nil {
		return b, errors.Join(fmt.Errorf("the backup is intact, but the database in it is not: %w", err), db.Close())
	}

	if mend != nil {
		if err := mend(ctx, db); err != nil {
			return b, errors.Join(err, db.Close())
		}
	}

	if err := db.Close(); err != nil {
		return b, err
	}

	// The rename is what makes it appear, so every file must be durable before.
	if err := errors.Join(syncFiles(temp), disk.Rename(temp, c.Dir)); err != nil {
		return b, err
	}

	return b, disk.SyncDir(filepath.Dir(c.Dir))
}

// fill writes a backup into a new database, which is durable only after syncFiles.
func fill(ctx context.Context, dir string, c Config, r io.Reader) (b Backup, err error) {
	bdb, err := badger.Open(badgerOptions(dir, badgerLog{c.Logger, newHealth()}).WithSyncWrites(false))
	if err != nil {
		return b, err
	}

	txn, keys, bytes := bdb.NewTransaction(true), 0, 0
	defer func() {
		txn.Discard()
		err = errors.Join(err, bdb.Close())
	}()

	b, err = ReadBackup(r, func(key, value []byte) error {
		// In parts, because a transaction holds only so much. Half of them is as good as
		// nothing: the folder appears at the end.
		if keys++; keys > restoreKeys || bytes+len(value) > restoreBytes {
			if err := errors.Join(ctx.Err(), txn.Commit()); err != nil {
				return err
			}
			txn, keys, bytes = bdb.NewTransaction(true), 1, 0
		}

		bytes += len(value)

		// ReadBackup uses its buffers again, and Badger keeps what it is given.
		return txn.Set(append([]byte(nil), key...), append([]byte(nil), value...))
	})
	if err != nil {
		return b, err
	}

	// The format last: without it the folder is not a database of ours.
	return b, errors.Join(txn.Commit(), folder.WriteFormat(dir))
}

// syncFiles makes all files of a folder durable, and the folder itself.
func syncFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		// Syncing the folder alone makes names durable, and no content.
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return disk.SyncDir(dir)
}
