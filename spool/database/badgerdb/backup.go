package badgerdb

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"

	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/disk"
)

// A backup is a file in a separate format, independent of Badger's files:
//
//	backupHead
//	one zstd stream:
//	    for each key      uvarint  length of the key, above 0
//	                               key
//	                      uvarint  length of the value, above 0
//	                               value
//	    at the end        uvarint  0
//
// The stream ends with a checksum of its content, so a backup that is cut short, or has a
// flipped bit, is recognised as damaged.
const (
	backupName = "promptspool backup, "
	backupForm = backupName + "format 1, of a database of format %d\n"

	backupKeyMax   = 1 << 16
	backupValueMax = 256 << 20 // of badgerOptions' value log files
)

// backupHead is the first line of a backup: the versions of the file and of the layout of keys.
var backupHead = fmt.Sprintf(backupForm, folder.Format)

// Backup counts what a backup holds.
type Backup struct {
	Keys    uint64 `json:"keys"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"` // of keys and values, unpacked
}

// add counts one key.
func (b *Backup) add(key, value []byte) {
	b.Keys++
	b.Bytes += uint64(len(key) + len(value))

	// The key may come from a damaged backup, so its length byte is not trusted.
	if key[0] == ofAccount && len(key) > 2 && len(key) > 2+int(key[1]) {
		if _, table, _ := accountOf(key); table == tableRecord {
			b.Records++
		}
	}
}

// Backup writes everything in the database to w, as of the moment it is called. Reads and
// writes continue meanwhile; Erase waits until it is done. Each value is verified on the
// way.
func (db *DB) Backup(ctx context.Context, w io.Writer) (b Backup, err error) {
	// Erase reopens the files, and would block all reads until this one ended.
	db.erasing.Lock()
	defer db.erasing.Unlock()

	if _, err := io.WriteString(w, backupHead); err != nil {
		return b, err
	}
	// The server works meanwhile, so this takes one goroutine, and little memory.
	packed, err := zstd.NewWriter(w,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return b, err
	}

	out := bufio.NewWriterSize(packed, 64<<10)
	err = db.view(func(txn *badger.Txn) error {
		return db.each(ctx, txn, nil, nil, func(key, value []byte) (bool, error) {
			b.add(key, value)
			return true, errors.Join(writeCounted(out, key), writeCounted(out, value))
		})
	})
	if err != nil {
		return b, errors.Join(err, packed.Close())
	}

	// Without this end, what is written of a backup that failed would be a whole one.
	return b, errors.Join(out.WriteByte(0), out.Flush(), packed.Close())
}

// writeCounted writes b after its length.
func writeCounted(w *bufio.Writer, b []byte) error {
	_, err1 := w.Write(binary.AppendUvarint(nil, uint64(len(b))))
	_, err2 := w.Write(b)
	return errors.Join(err1, err2)
}

// ReadBackup reads a backup to its end and calls fn with each key and value, which fn
// must not keep. A nil fn only verifies. The error says what is wrong with the backup, or
// is fn's.
func ReadBackup(r io.Reader, fn func(key, value []byte) error) (b Backup, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	if err := readBackupHead(in); err != nil {
		return b, err
	}

	unpacked, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return b, err
	}
	defer unpacked.Close()

	content := bufio.NewReaderSize(unpacked, 64<<10)

	// The values come as they were written; that they are right shows only at the end.
	var key, value bytes.Buffer
	for {
		more, err := readCounted(content, &key, backupKeyMax)
		if err == nil && more {
			var there bool
			there, err = readCounted(content, &value, backupValueMax)
			if err == nil && !there {
				err = errors.New("it holds an empty value")
			}
		}

		switch {
		case err != nil:
			return b, fmt.Errorf("the backup is damaged after %d keys, or broke off: %w", b.Keys, err)
		case !more:
			return b, readEnd(content)
		}

		// fn sees keys before the checksum proves them, so it must be able to undo its work.
		b.add(key.Bytes(), value.Bytes())
		if fn != nil {
			if err := fn(key.Bytes(), value.Bytes()); err != nil {
				return b, err
			}
		}
	}
}

// readBackupHead reads the first line, which is backupHead or that of an earlier format.
func readBackupHead(in *bufio.Reader) error {
	// ReadSlice fails where the first line does not fit its buffer: then this is another file.
	line, err := in.ReadSlice('\n')

	before := 0
	_, _ = fmt.Sscanf(string(line), backupForm, &before)

	switch {
	case err != nil || !strings.HasPrefix(string(line), backupName):
		return errors.New("this is not a promptspool backup")
	case before < 1 || before > folder.Format || string(line) != fmt.Sprintf(backupForm, before):
		return fmt.Errorf("a newer version of promptspool wrote this backup (%s); restore it with that version",
			strings.TrimSpace(string(line)))
	}
	return nil
}

// readCounted reads a length and as many bytes into b. It returns false for a length of 0,
// and an error for one above most. Memory grows with what is there, not with what a
// damaged length claims.
func readCounted(r *bufio.Reader, b *bytes.Buffer, most uint64) (bool, error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > most {
		err = fmt.Errorf("it claims a part of %d bytes", n)
	}
	if err != nil || n == 0 {
		return false, err
	}

	// CopyN grows the buffer as bytes arrive.
	b.Reset()
	_, err = io.CopyN(b, r, int64(n))
	return err == nil, err
}

// readEnd reads the end of the stream. There zstd compares the checksum.
func readEnd(r *bufio.Reader) error {
	switch _, err := r.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("the backup is damaged at its end: more data follows it")
	default:
		return fmt.Errorf("the backup is damaged at its end: %w", err)
	}
}

// Bounds of one transaction of a restore: memory, and what Badger accepts.
const (
	restoreBytes = 8 << 20
	restoreKeys  = 2000
)

// Restore creates the database c.Dir from a backup. c.Dir must not exist. It appears when
// Restore returns nil: complete, durable and checked. Until then everything is in a
// folder next to it, which is removed if anything goes wrong. mend may change the database
// after the check and before it appears; nil changes nothing.
func Restore(ctx context.Context, c Config, r io.Reader, mend func(context.Context, *DB) error) (b Backup, err error) {
	if _, err := os.Lstat(c.Dir); !errors.Is(err, os.ErrNotExist) {
		return b, fmt.Errorf("%s already exists; move it away, or restore elsewhere", c.Dir)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}

	// Leftovers of an interrupted restore are removed.
	temp := c.Dir + ".restoring"
	if err := errors.Join(disk.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return b, fmt.Errorf("restore: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, disk.RemoveAll(temp))
		}
	}()

	b, err = fill(ctx, temp, c, r)
	if err != nil {
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
	if err := errors.Join(disk.SyncFiles(temp), disk.SyncDir(temp), disk.Rename(temp, c.Dir)); err != nil {
		return b, err
	}

	return b, disk.SyncDir(filepath.Dir(c.Dir))
}

// fill writes a backup into a new database, which is durable only once its files are synced.
func fill(ctx context.Context, dir string, c Config, r io.Reader) (b Backup, err error) {
	bdb, err := badger.Open(badgerOptions(dir, newHealth().logOf(c.Logger)).WithSyncWrites(false))
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
