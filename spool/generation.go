package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/rawlog"
)

// generationFramesMax keeps all keys of a generation in one memtable: 16,384 of them take some 1.5 MiB of its 2, in memory
// and in its log. So nothing is flushed while a generation is written, and level 0 never holds more than one table.
const generationFramesMax = 16384

// frameOverheadBytes is what a frame costs beside its payload, on both of Badger's files; rounded up.
const frameOverheadBytes = 192

// A generation is one small Badger database that holds a run of sequences. It is written during one opening of the spool,
// then sealed (closed, which writes its keys to a table), then only read, then removed as a folder.
type generation struct {
	name  string // its folder in the spool's; changed with Spool.readMu and Spool.mu held, by restore
	first uint64 // the first sequence that it may hold

	// Under Spool.mu.
	last     uint64 // the last sequence that it holds; first-1 when it is empty
	firstAt  time.Time
	unsealed bool // it is written, or to be sealed

	// Owned by the committing goroutine while the generation is written. capacity is what it has room for on the disk,
	// counted as hasRoom does.
	capacity int64
	frames   int
	bytes    int64
	begun    time.Time // when it got its place
	folder   *os.File  // nil once it is sealed; see makeGeneration

	// Under Spool.readMu.
	db     *badger.DB // nil while closed
	proved bool       // its value log was read whole
}

// generationName names the folder of a generation. Edition 0 is the one that was written by appends; a higher one was
// rebuilt from the raw files of the one before.
func generationName(first uint64, edition int) string {
	if edition == 0 {
		return fmt.Sprintf("gen-%016x", first)
	}
	return fmt.Sprintf("gen-%016x.%d", first, edition)
}

func parseGenerationName(name string) (first uint64, edition int, ok bool) {
	base, suffix, rebuilt := strings.Cut(name, ".")
	if n, err := fmt.Sscanf(base, "gen-%016x", &first); n != 1 || err != nil || len(base) != len("gen-")+16 {
		return 0, 0, false
	}
	if rebuilt {
		if n, err := fmt.Sscanf(suffix, "%d", &edition); n != 1 || err != nil || edition < 1 {
			return 0, 0, false
		}
	}
	return first, edition, generationName(first, edition) == name
}

// hasRoom says whether the generation has room for so much more.
func (g *generation) hasRoom(frames int, bytes int64) bool {
	return g.frames+frames <= generationFramesMax && g.bytes+bytes+int64(g.frames+frames)*frameOverheadBytes <= g.capacity
}

// makeGeneration makes an empty generation with disk blocks for all that will be written to it, in a folder that Open would remove.
// Badger knows the folder by its open file, so that it can get its name from place while the database is open. When it fails it leaves
// nothing.
func makeGeneration(dir string, capacity int64, log badger.Logger) (g *generation, err error) {
	CrashPoint(CrashGenerationMake)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	CrashPoint(CrashGenerationMkdir)
	g = &generation{name: filepath.Base(dir), capacity: capacity}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.discard(dir))
		}
	}()
	if g.folder, err = os.Open(dir); err != nil {
		return g, err
	}
	open := fmt.Sprintf("/proc/self/fd/%d", g.folder.Fd())
	g.db, err = createDatabase(generationOptions(open, capacity, log).WithSyncWrites(!unsafeNoSync), capacity)
	return g, err
}

// createDatabase makes an empty database in an empty folder, durably but for the folder's own name, with disk blocks for all that will
// be written to it.
func createDatabase(options badger.Options, capacity int64) (*badger.DB, error) {
	dir := options.Dir
	db, err := openWritable(options)
	if err != nil {
		return nil, err
	}
	CrashPoint(CrashGenerationOpened)
	if err := errors.Join(reserve(dir, capacity), tighten(dir)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// place gives a generation that was made its name among the others, durably.
func (g *generation) place(dir string, first uint64) error {
	name := generationName(first, 0)
	if err := os.Rename(filepath.Join(dir, g.name), filepath.Join(dir, name)); err != nil {
		return err
	}
	CrashPoint(CrashGenerationNamed)
	g.name, g.first, g.last = name, first, first-1
	return syncDir(dir)
}

// close closes for good what was open to write the generation, and seals it.
func (g *generation) close() error {
	err := errors.Join(closeSealed(g.db), g.folder.Close())
	g.db, g.folder = nil, nil
	return err
}

// discard removes a generation that nothing was written to, as far as it was made.
func (g *generation) discard(dir string) error {
	var errs []error
	if g.db != nil {
		errs = append(errs, g.db.Close())
	}
	if g.folder != nil {
		errs = append(errs, g.folder.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(dir))...)
}

// openSealed opens a sealed generation for reading. Badger changes nothing in its folder, and keeps no memtable for it. Its table has
// been read whole then, its value log has not.
func openSealed(dir string, log badger.Logger) (db *badger.DB, err error) {
	sealed, err := isSealed(dir)
	if err != nil {
		return nil, err
	}
	if !sealed {
		return nil, errUnsealed
	}
	if err := readFirstBlocks(dir); err != nil {
		return nil, err
	}

	err = rawlog.Guard(dir, func() (err error) {
		db, err = badger.Open(generationOptions(dir, 0, log).WithReadOnly(true))
		return err
	})
	return db, err
}

// readFirstBlocks reads what Badger reads of the value logs when it opens them.
func readFirstBlocks(dir string) error {
	paths, err := filesBySuffix(dir, ".vlog")
	for _, path := range paths {
		err = errors.Join(err, readAt(path, make([]byte, rawlog.HeaderBytes), 0))
	}
	if errors.Is(err, io.EOF) { // Badger tells
		return nil
	}
	return unreadableOr(err)
}

// readValueLogs reads the value logs whole, so that what the disk cannot read is found before
// Badger reads it through a mapping.
func readValueLogs(dir string) error {
	paths, err := filesBySuffix(dir, ".vlog")
	if err != nil {
		return err
	}
	for _, path := range paths {
		bad, err := rawlog.Probe(path)
		if err != nil {
			return unreadableOr(err)
		}
		if len(bad) > 0 {
			return fmt.Errorf("%w: %s", errUnreadable, path)
		}
	}
	return nil
}

// unreadableOr makes an I/O error an errUnreadable, and returns another as it is.
func unreadableOr(err error) error {
	if rawlog.Unreadable(err) {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return err
}

// replay lets Badger replay the log of a generation that was not closed, and seals it.
func replay(dir string, generationBytes int64, log badger.Logger) error {
	if err := refuseWithoutManifest(dir); err != nil {
		return err
	}
	db, err := openWritable(generationOptions(dir, generationBytes, log).WithMemTableSize(recoveryMemTableBytes))
	if err != nil {
		return err
	}
	return closeSealed(db)
}

// generationOptions: nothing compacts, as there is at most one table. The value log has room for a full generation and
// one more transaction, so that it is one file which never grows beyond its mapping.
func generationOptions(dir string, generationBytes int64, log badger.Logger) badger.Options {
	return storeOptions(dir, generationBytes+appendBytesMax+generationFramesMax*frameOverheadBytes, log).WithNumCompactors(0)
}

// refuseWithoutManifest guards against what Badger does with a folder whose MANIFEST is gone: it deletes all tables.
func refuseWithoutManifest(dir string) error {
	_, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	return err
}

// filesBySuffix gives the paths of a folder's entries whose names end so, in order.
func filesBySuffix(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// walkKeys calls yield for the first part of every event with from <= sequence, in order, until yield says false. It reads
// keys only. Events that lack their first part are not shown. After an error, which is that of a disk that cannot be read, the
// database must be abandoned.
func walkKeys(db *badger.DB, from uint64, yield func(eventKey) bool) error {
	return unreadableOr(rawlog.Guard(db.Opts().Dir, func() error {
		eachKey(db, from, yield)
		return nil
	}))
}

func eachKey(db *badger.DB, from uint64, yield func(eventKey) bool) {
	txn := db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	for it.Seek(seekKey(from)); it.Valid(); it.Next() {
		k, ok := decodeEventKey(it.Item().Key())
		if ok && k.part == 0 && !yield(k) {
			return
		}
	}
}
