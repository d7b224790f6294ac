package badgerdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"

	"promptspool/api/wire"
	"promptspool/spool/archive"
	"promptspool/spool/database/badgerdb/folder"
	"promptspool/spool/disk"
)

// Badger writes through mappings of sparse files, in its own goroutines as well. When
// the disk has no block for such a hole, the kernel sends SIGBUS, which ends the process.
// So a part of the disk stays free: writes must not take it, but what Badger has already
// begun may.

const (
	// freeMinDefault is enough for a memtable that is written out and for a compaction of
	// level 0.
	freeMinDefault      = 256 << 20
	freeMinDefaultShare = 16 // of a small disk

	// freeMinLeast is enough for a group, and for the log and the table of one memtable.
	freeMinLeast = 64 << 20

	openBytes    = 8 << 20   // to open, in addition to the tables that write-ahead logs become
	closeBytes   = 48 << 20  // for the table that the memtable becomes
	collectBytes = 128 << 20 // for the copy of a value log
)

// freeSpace watches the disk under a database. It belongs to the goroutine that commits.
type freeSpace struct {
	dir      string
	freeMin  int64 // 0: the default
	logger   *slog.Logger
	refusing bool
}

// free returns how much of the disk is free, and how much should stay free. If it cannot
// tell, it returns that everything is free: the folder may be gone, which
// folderLock.present notices.
func (f *freeSpace) free() (free, freeMin int64) {
	found, err := disk.SpaceAt(f.dir)
	if err != nil {
		return 1 << 62, 0
	}

	// Of a small disk the default would take too large a share.
	freeMin = f.freeMin
	if freeMin == 0 {
		freeMin = min(freeMinDefault, found.Total/freeMinDefaultShare)
	}
	return found.Free, max(freeMin, freeMinLeast)
}

// FreeMin returns how many bytes of the disk stay free: with less, writes are refused.
func (db *DB) FreeMin() int64 {
	_, freeMin := db.space.free()
	return freeMin
}

// admission decides which changes of a group the disk has space for.
type admission struct{ free, freeMin int64 }

// admit looks at the disk, and logs when refusing writes begins or ends.
func (f *freeSpace) admit() admission {
	var a admission
	a.free, a.freeMin = f.free()

	switch full := a.free < a.freeMin; {
	case full && !f.refusing:
		f.logger.Warn("the disk is nearly full; writes are refused, and sidecars keep their events",
			"free_bytes", a.free, "free_min_bytes", a.freeMin, "folder", f.dir)
	case !full && f.refusing:
		f.logger.Info("the disk has space again; writes are accepted", "free_bytes", a.free)
	}
	f.refusing = a.free < a.freeMin

	return a
}

// refusal returns the error for a change with so many bytes of bodies, or nil. Changes
// without bodies may take half of what should stay free: deletions free space, and people
// must be able to sign in.
func (a admission) refusal(bytes int) error {
	least := a.freeMin
	if bytes == 0 {
		least /= 2
	}
	if a.free >= least {
		return nil
	}

	return wire.Unavailable(retryAfter, "The disk under the server is nearly full: "+
		"%d bytes are free, and --free-min is %d. "+
		"Free some space, or add some. Sidecars keep their events meanwhile.", a.free, a.freeMin)
}

// canOpen returns an error if opening the database would fill the disk, and so end the
// process.
func (f *freeSpace) canOpen() error {
	logs, err := filepath.Glob(filepath.Join(f.dir, "*.mem"))
	if err != nil {
		return err
	}

	// Badger makes a table of each write-ahead log before it deletes the log.
	need := int64(openBytes)
	for _, log := range logs {
		// Its blocks, not its size: the file is sparse.
		if info, err := os.Stat(log); err == nil {
			need += disk.Blocks(info)
		}
	}

	free, _ := f.free()
	if free >= need {
		return nil
	}

	return fmt.Errorf("the disk is full: opening the database takes %d bytes, and %d are free; "+
		"free %d more and start again: %w",
		need, free, need-free, disk.ErrFull)
}

// has reports whether bytes can be taken and still leave free what writes need.
func (f *freeSpace) has(bytes int64) bool {
	free, freeMin := f.free()
	return free-bytes >= freeMin
}

// canClose reports whether there is enough space to write out the memtable.
func (f *freeSpace) canClose() bool {
	free, _ := f.free()
	return free >= closeBytes
}

// ahead reserves the blocks that the next commit fills, so that others who fill the disk
// meanwhile cannot end the process. Only the goroutine that is committing uses it.
type ahead struct {
	dir            string
	values, memory newest
}

// reserve returns an error if the disk has no blocks for so many bytes in the value log and in
// the memtable's log. Other errors are left to the write, which meets them too.
func (a *ahead) reserve(values, memory int64) error {
	err := errors.Join(a.values.reserve(a.dir, values), a.memory.reserve(a.dir, memory))
	if disk.IsFull(err) {
		return wire.Unavailable(retryAfter, "The disk under the server is full. "+
			"Free some space, or add some. Sidecars keep their events meanwhile. (%w)", err)
	}
	return nil
}

// close closes the files, until reserve opens the newest again.
func (a *ahead) close() {
	a.values.close()
	a.memory.close()
}

// newest is the file of a kind that Badger writes. Their numbers have no gaps.
type newest struct {
	format string
	next   string      // the path of the file's successor
	file   *disk.Ahead // nil: not opened yet
}

func (n *newest) reserve(dir string, bytes int64) (err error) {
	if n.file == nil || disk.Exists(n.next) {
		n.close()

		number := 0
		names, _ := fs.Glob(os.DirFS(dir), "*"+filepath.Ext(n.format))
		for _, name := range names {
			// The last is the newest.
			_, _ = fmt.Sscanf(name, "%d", &number)
		}
		n.next = filepath.Join(dir, fmt.Sprintf(n.format, number+1))
		n.file, err = disk.OpenAhead(filepath.Join(dir, fmt.Sprintf(n.format, number)))
		if err != nil {
			return err
		}
	}

	return n.file.Reserve(bytes)
}

func (n *newest) close() {
	if n.file != nil {
		_ = n.file.Close()
		n.file = nil
	}
}

// spare is the memory that Badger keeps of the builders of tables for reuse.
//
// Badger keeps the memory of eight builders and uses them in turn. Each grows to the size
// for the largest table, which is a whole memtable: some 400 MB, little of which is ever
// in use. Badger frees one every two seconds, but only while no table is being built.
// With a memory limit below that, the Go runtime would collect garbage endlessly, with
// more than a third of all processor time.
//
// There is no option for it, and the field is private. So this reads the field once,
// before anybody could change it, and then calls only what is public.
type spare struct{ pool *z.AllocatorPool } // nil: another version of Badger, without one

// spareOf returns the spare memory of a database that was just opened.
func spareOf(bdb *badger.DB) spare {
	field := reflect.ValueOf(bdb).Elem().FieldByName("allocPool")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return spare{}
	}
	return spare{(*z.AllocatorPool)(field.UnsafePointer())}
}

// freshBytes is the size of an allocator that an empty pool makes. Those of builders are
// far larger.
const freshBytes = 512

// release removes all spare memory from the pool, for the garbage collector, and returns
// how much it was. The database must not be closed meanwhile.
func (s spare) release() (bytes uint64) {
	if s.pool == nil {
		return 0
	}

	// Until the pool is empty, which shows in a fresh allocator.
	for {
		a := s.pool.Get(freshBytes, "spare")
		n := a.Allocated()
		a.Release()

		if n <= freshBytes {
			return bytes
		}

		bytes += n
	}
}

// Size returns what all accounts hold together. It reads one key of each account, and no
// record.
func (db *DB) Size(context.Context) (s archive.Size, err error) {
	err = db.view(func(txn *badger.Txn) error {
		return eachAccount(txn, func(k keys) error {
			counts, err := loadCounts(txn, k)
			s.Records += uint64(counts.Records)
			s.Bytes += uint64(counts.Bytes)
			s.Orphans.Add(counts.Orphans)
			return err
		})
	})

	s.DiskBytes = disk.Used(db.dir, "")
	return s, err
}

// Damage is what the disk has done to a database.
type Damage struct {
	Quarantined     int   // files moved to quarantine, ever
	UnreadableBytes int64 // of data that this process could not read: it is lost
}

// Damage returns what the disk has done to the database.
func (db *DB) Damage() Damage {
	return Damage{folder.Quarantined(db.dir), db.unreadable.Load()}
}

// Counts returns what the account has; see archive.Store.
func (db *DB) Counts(_ context.Context, account string) (counts archive.Counts, err error) {
	err = db.viewOf(account, func(txn *badger.Txn, k keys) (err error) {
		counts, err = loadCounts(txn, k)
		return err
	})
	return counts, err
}

// loadCounts reads what an account has; zero if nothing was counted yet.
func loadCounts(txn *badger.Txn, k keys) (counts archive.Counts, err error) {
	value, err := loadBytes(txn, k.count())
	if err == nil && value != nil {
		err = decode(k.count(), value, &counts)
	}
	return counts, err
}
