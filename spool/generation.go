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

	"promptspool/spool/disk"
	"promptspool/spool/frame"
	"promptspool/spool/rawlog"
)

// generationFramesMax keeps all keys of a generation in one memtable: 16,384 of them take
// some 1.5 MiB of its 2, in memory and in its log. So nothing is flushed while a
// generation is written, and level 0 never holds more than one table.
const generationFramesMax = 16384

// frameOverheadBytes is what a frame costs in addition to its payload, in both of
// Badger's files; rounded up.
const frameOverheadBytes = 192

// A generation is one small Badger database that holds a run of sequences. It is written
// during one opening of the spool, then sealed (closed, which writes its keys to a
// table), then only read, and finally removed as a folder.
type generation struct {
	name  string // its folder in the spool's; restore changes it, with readMu and mu held
	first uint64 // the first sequence that it may hold

	// Guarded by Spool.mu.
	last     uint64 // the last sequence that it holds; first-1 when it is empty
	firstAt  time.Time
	unsealed bool // it is written, or waits to be sealed

	// Owned by the leader while the generation is written.
	capacity int64 // the size that it has room for on the disk, counted as hasRoom does
	frames   int
	bytes    int64
	begun    time.Time // when it got its place
	folder   *os.File  // nil once it is sealed; see makeGeneration

	// Guarded by Spool.readMu.
	db     *badger.DB // nil while closed
	proved bool       // its value log was read whole
}

// generationName names the folder of a generation. Edition 0 was written by appends; a
// higher one was rebuilt from the raw files of the edition before it.
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

	// Sscanf also accepts other spellings of the same numbers.
	return first, edition, generationName(first, edition) == name
}

// hasRoom reports whether the generation has room for this much more.
func (g *generation) hasRoom(frames int, bytes int64) bool {
	return g.frames+frames <= generationFramesMax &&
		g.bytes+bytes+int64(g.frames+frames)*frameOverheadBytes <= g.capacity
}

// makeGeneration makes an empty generation with disk blocks for all that will be written
// to it.
//
// Its folder has a name that Open would remove. Badger opens the folder by its file
// descriptor, so that place can rename it while the database is open. On an error nothing
// is left of it.
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

	// An open folder keeps its descriptor when it is renamed.
	if g.folder, err = os.Open(dir); err != nil {
		return g, err
	}
	open := fmt.Sprintf("/proc/self/fd/%d", g.folder.Fd())
	g.db, err = createDatabase(generationOptions(open, capacity, log).WithSyncWrites(!unsafeNoSync), capacity)
	return g, err
}

// createDatabase makes an empty database in an empty folder, with disk blocks for all
// that will be written to it. It is durable, except for the name of the folder.
func createDatabase(options badger.Options, capacity int64) (*badger.DB, error) {
	dir := options.Dir
	db, err := openWritable(options)
	if err != nil {
		return nil, err
	}
	CrashPoint(CrashGenerationOpened)

	// Before the first write: from here on a full disk can no longer hit this database.
	if err := errors.Join(reserve(dir, capacity), tighten(dir)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// place durably gives a new generation its name among the others.
func (g *generation) place(dir string, first uint64) error {
	name := generationName(first, 0)
	if err := os.Rename(filepath.Join(dir, g.name), filepath.Join(dir, name)); err != nil {
		return err
	}
	CrashPoint(CrashGenerationNamed)

	g.name, g.first, g.last = name, first, first-1
	return disk.SyncDir(dir)
}

// close closes what was open to write the generation, for good, and seals it.
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

// openSealed opens a sealed generation for reading. Badger changes nothing in its folder,
// and keeps no memtable for it. By then its table was read whole, but not its value log.
func openSealed(dir string, log badger.Logger) (db *badger.DB, err error) {
	sealed, err := isSealed(dir)
	if err != nil {
		return nil, err
	}
	if !sealed {
		return nil, errUnsealed
	}

	// A block that the disk cannot read would be SIGBUS inside Badger. Here it is an
	// error.
	if err := readFirstBlocks(dir); err != nil {
		return nil, err
	}

	err = rawlog.Guard(dir, func() (err error) {
		db, err = badger.Open(generationOptions(dir, 0, log).WithReadOnly(true))
		return err
	})
	return db, err
}

// readFirstBlocks reads the part of the value logs that Badger reads when it opens them.
func readFirstBlocks(dir string) error {
	paths, err := filesBySuffix(dir, ".vlog")
	for _, path := range paths {
		err = errors.Join(err, readAt(path, make([]byte, rawlog.HeaderBytes), 0))
	}

	if errors.Is(err, io.EOF) { // Badger reports a log that is too short
		return nil
	}
	return unreadableOr(err)
}

// readValueLogs reads the value logs whole, so that what the disk cannot read is found
// before Badger reads it through a mapping.
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

// unreadableOr wraps an I/O error in errUnreadable, and returns any other error as it is.
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

	options := generationOptions(dir, generationBytes, log).WithMemTableSize(recoveryMemTableBytes)
	db, err := openWritable(options)
	if err != nil {
		return err
	}
	return closeSealed(db)
}

// generationOptions are the options of a generation. Nothing compacts, because there is
// at most one table. The value log has room for a full generation and one more
// transaction, so that it is one file which never grows beyond its mapping.
func generationOptions(dir string, generationBytes int64, log badger.Logger) badger.Options {
	valueLogBytes := generationBytes + appendBytesMax + generationFramesMax*frameOverheadBytes
	return storeOptions(dir, valueLogBytes, log).WithNumCompactors(0)
}

// refuseWithoutManifest returns an error if the folder has no MANIFEST: Badger would
// delete all of its tables.
func refuseWithoutManifest(dir string) error {
	_, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	return err
}

// filesBySuffix returns the paths of a folder's entries whose names end in suffix, in
// order.
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

// walkKeys calls yield for the first part of every event from this sequence on, in order,
// until yield returns false. It reads keys only. Events that lack their first part are
// left out.
//
// An error means that the disk cannot be read. The database must then be abandoned, not
// closed.
func walkKeys(db *badger.DB, from uint64, yield func(frame.EventKey) bool) error {
	return unreadableOr(rawlog.Guard(db.Opts().Dir, func() error {
		eachKey(db, from, yield)
		return nil
	}))
}

func eachKey(db *badger.DB, from uint64, yield func(frame.EventKey) bool) {
	txn := db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()

	for it.Seek(frame.SeekKey(from)); it.Valid(); it.Next() {
		k, ok := frame.DecodeEventKey(it.Item().Key())
		if ok && k.Part == 0 && !yield(k) {
			return
		}
	}
}
