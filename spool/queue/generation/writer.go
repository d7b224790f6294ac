package generation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"promptspool/spool/crashpoint"
	"promptspool/spool/disk"
)

// framesMax keeps all keys of a generation in one memtable: 16,384 of them take some 1.5
// MiB of its 2, in memory and in its log. So nothing is flushed while a generation is
// written, and level 0 never holds more than one table.
const framesMax = 16384

// frameOverheadBytes is what a frame costs in addition to its payload, in both of
// Badger's files; rounded up.
const frameOverheadBytes = 192

// CapacityFor returns the capacity of a generation that a commit of this size fills.
func CapacityFor(frames int, bytes int64) int64 {
	return bytes + int64(frames)*frameOverheadBytes
}

// Writer is a generation that takes new events.
//
// Its methods are for one goroutine at a time. Its Reader may be used by others meanwhile.
type Writer struct {
	dir      string   // Place changes it
	capacity int64    // the size that it has space for on the disk, counted as HasSpace does
	folder   *os.File // keeps dir open under whatever name
	db       *badger.DB
	mapped   mapped
	framer   framer
	unplaced //lint:ignore U1000 the portable form has fields

	frames int
	bytes  int64
}

// Create makes an empty generation with disk blocks for everything that will be written
// to it.
//
// It is not a generation until Place. first is the first sequence that it may hold. On an
// error nothing is left of it.
func Create(dir string, first uint64, capacity int64, log badger.Logger) (w *Writer, err error) {
	crashpoint.Reach(crashpoint.GenerationMake)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	crashpoint.Reach(crashpoint.GenerationMkdir)

	w = &Writer{dir: dir, capacity: capacity}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Discard())
		}
	}()

	if err := w.prepare(first); err != nil {
		return w, err
	}
	// An open folder keeps its descriptor when it is renamed.
	w.folder, err = os.Open(w.dir)
	if err != nil {
		return w, err
	}

	options := generationOptions(openPath(w.folder), capacity, log)
	w.db, err = createDatabase(options, capacity)
	if err != nil {
		return w, err
	}
	w.mapped, err = openMapped(w.db)
	return w, err
}

// createDatabase makes an empty database in an empty folder, with disk blocks for
// everything that will be written to it. It is durable, except for the name of the
// folder.
func createDatabase(options badger.Options, capacity int64) (*badger.DB, error) {
	dir := options.Dir
	db, err := openWritable(options)
	if err != nil {
		return nil, err
	}
	crashpoint.Reach(crashpoint.GenerationOpened)

	// Before the first write: from here on a full disk can no longer hit this database.
	if err := errors.Join(reserve(dir, capacity), tighten(dir)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Place durably gives a new generation its name among the others, which are in the same
// folder. first is the first sequence that it may hold. Call it before the first commit.
func (w *Writer) Place(first uint64) (name string, err error) {
	if err := w.place(first); err != nil {
		return "", err
	}
	crashpoint.Reach(crashpoint.GenerationNamed)

	return Name(first, 0), disk.SyncDir(filepath.Dir(w.dir))
}

// Capacity returns the size that the generation has space for, as CapacityFor counts it.
func (w *Writer) Capacity() int64 { return w.capacity }

// HasSpace reports whether the generation has space for this much more.
func (w *Writer) HasSpace(frames int, bytes int64) bool {
	return w.frames+frames <= framesMax && CapacityFor(w.frames+frames, w.bytes+bytes) <= w.capacity
}

// Reader returns a reader of what is committed. It ends with the Writer: do not close it.
func (w *Writer) Reader() *Reader { return &Reader{w.db} }

// sync makes a commit durable, which Badger has only written.
func (w *Writer) sync() error {
	if crashpoint.NoSync {
		return nil
	}

	return w.mapped.sync()
}

// Present returns an error if the generation's folder is gone, or cannot be written to. A
// commit would succeed nevertheless.
func (w *Writer) Present() error { return disk.Present(w.folder, w.dir) }

// Close ends the writing, and seals the generation. Nothing can be used after that.
func (w *Writer) Close() error {
	// Badger removes files when it closes, which nothing else may have open then.
	return errors.Join(w.mapped.close(), closeSealed(w.db), w.folder.Close())
}

// Discard removes a generation that nothing was written to, as far as it was made.
func (w *Writer) Discard() error {
	errs := []error{w.mapped.close()}
	if w.db != nil {
		errs = append(errs, w.db.Close())
	}
	if w.folder != nil {
		errs = append(errs, w.folder.Close())
	}
	return errors.Join(append(errs, w.remove())...)
}

// Badger writes through mappings of files with holes in them. When the disk has no block
// for such a hole, the kernel sends SIGBUS, which ends the process, so Badger must never
// meet a full disk. This file gives a generation all its blocks when it is made. From
// then on it takes no more, and commits succeed even when the disk is full.

// Space returns the disk space that a generation of this capacity takes.
func Space(capacity int64) int64 {
	// Badger makes both files twice as long as they may become.
	if !disk.HasHoles {
		return 2*(valueLogBytes(capacity)+memTableBytes) + smallFilesSpace
	}

	return valueLogSpace(capacity) + writeAheadSpace(capacity) + smallFilesSpace
}

// valueLogSpace returns the space for the value log. HasSpace counts more for each frame
// than it takes.
func valueLogSpace(capacity int64) int64 { return disk.WholeBlocks(capacity) + disk.BlockBytes }

// writeAheadSpace returns the space for the write-ahead log, where a frame takes at most
// 128 bytes, including the end of its transaction.
func writeAheadSpace(capacity int64) int64 {
	return disk.WholeBlocks(min(framesMax, capacity/frameOverheadBytes)*128) + disk.BlockBytes
}

// smallFilesSpace is for the folder, MANIFEST, KEYREGISTRY, DISCARD and SEAL, a block
// each, and for the file system's own structures.
const smallFilesSpace = 64 << 10

// reserve gives the files of a new generation all the blocks that will be written.
func reserve(dir string, capacity int64) error {
	// Badger made both files, with holes in them. There is exactly one of each in a new
	// generation, and no second one later: see framesMax and generationOptions.
	spaces := map[string]int64{".vlog": valueLogSpace(capacity), ".mem": writeAheadSpace(capacity)}
	for suffix, space := range spaces {
		paths, err := filesBySuffix(dir, suffix)
		if err != nil {
			return err
		}
		if len(paths) != 1 {
			return fmt.Errorf("%d files *%s in a new generation", len(paths), suffix)
		}

		file, err := os.OpenFile(paths[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(disk.Allocate(file, space), file.Close()); err != nil {
			return fmt.Errorf("cannot reserve %d bytes for %s: %w", space, paths[0], err)
		}
	}
	return nil
}

// openWritable opens a database for writing. Badger writes the headers of its files
// through mappings, before reserve can give them blocks. If another process fills the
// disk in that moment, openWritable returns an error instead of ending the process.
func openWritable(options badger.Options) (db *badger.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			db, err = nil, fmt.Errorf("badger met a full disk (%v): %w", fault, disk.ErrFull)
		}
	}()

	return badger.Open(options)
}

const (
	memTableBytes = 2 << 20
	// tableBytes is half of what Badger allocates to make a table of a memtable, which takes
	// some 60 bytes for each frame. It grows where that is too little.
	tableBytes = 512 << 10
	// rebuildMemTableBytes is for a rebuild, which commits each event alone: the marks of so
	// many commits take space in the log.
	rebuildMemTableBytes = 4 << 20

	// valueThreshold sends every frame, which is longer, to the value log, and keeps
	// Badger's own end-of-transaction mark, at most 20 bytes, out of it. With 0 that mark
	// would go to the value log too, and Badger 4.9.6 would then drop the whole
	// write-ahead log when it replays it after a crash.
	valueThreshold = 32

	// CommitBytesMax bounds what one transaction holds: an event of 32 MiB and its
	// envelope.
	CommitBytesMax = 36 << 20
	// CommitFramesMax bounds the frames of one transaction. It stays below Badger's bound
	// on the entries of one: 15 % of the memtable in nodes of 96 bytes is 3,276. Badger's
	// bound in bytes counts keys and pointers only, some 50 bytes a frame, and is wider.
	CommitFramesMax = 3072
)

// storeOptions are the options that all our Badger databases share. There is no cache, no
// compression (frames must be raw in the files) and no conflict detection (there is one
// writer).
//
// The value log must never outgrow twice valueLogBytes: Badger maps that much when it
// makes the file. When a write goes beyond, it remaps without taking its own lock, while
// others read from the old mapping. It rolls the file only between transactions, so
// valueLogBytes must be at least what a transaction may hold.
func storeOptions(dir string, valueLogBytes int64, log badger.Logger) badger.Options {
	return badger.DefaultOptions(dir).
		WithSyncWrites(false). // see mapped
		WithValueThreshold(valueThreshold).
		WithValueLogFileSize(valueLogBytes).
		WithMemTableSize(memTableBytes).
		WithNumMemtables(1).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithCompression(options.None).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithVerifyValueChecksum(true).
		WithChecksumVerificationMode(options.OnTableAndBlockRead).
		WithNumVersionsToKeep(1).
		WithLogger(log)
}

// tighten removes the access of other users to Badger's files, which it makes with mode
// 0666 less the umask. It also makes their names durable, which Badger leaves out for the
// value log.
func tighten(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	// A file that is gone was Badger's own to remove, and needs no mode.
	for _, f := range files {
		if f.Type().IsRegular() {
			if err := os.Chmod(filepath.Join(dir, f.Name()), 0o600); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
	}
	return disk.SyncDir(dir)
}

// generationOptions are the options of a generation. Nothing compacts, because there is
// at most one table. The value log has space for a full generation and one more
// transaction, so that it is one file which never grows beyond its mapping.
func generationOptions(dir string, generationBytes int64, log badger.Logger) badger.Options {
	return storeOptions(dir, valueLogBytes(generationBytes), log).
		WithNumCompactors(0).
		WithBaseTableSize(tableBytes)
}

func valueLogBytes(generationBytes int64) int64 {
	return generationBytes + CommitBytesMax + framesMax*frameOverheadBytes
}
