package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
)

// Open opens Badger's files, after replacing those that the disk cannot read. It returns
// how many bytes were lost by that. The caller has locked the folder.
func Open(options badger.Options, log *slog.Logger, readAll bool) (db *badger.DB, lost int64, err error) {
	// Files that Badger cannot open must go, or be replaced, before it reads anything.
	s := salvage{options: options, dir: options.Dir, readAll: readAll, logger: log}
	err = removeEmptyLogs(options.Dir, log)
	if err == nil {
		err = s.run()
	}
	if err == nil {
		db, err = badger.Open(options.WithBypassLockGuard(true))
	}

	if err != nil {
		return nil, 0, fmt.Errorf("open the database in %s: %w", options.Dir, err)
	}
	return db, s.bytes, nil
}

// removeEmptyLogs removes empty logs, which Badger refuses to open. A kill leaves one
// where Badger creates a log, which it names before giving it a size, or deletes one,
// which it truncates first. Nothing refers to them: no log is written before it has a
// size, or truncated while it is needed.
func removeEmptyLogs(dir string, log *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	removed := false
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".vlog" && ext != ".mem" {
			continue
		}

		// Only empty ones: a log with anything in it is data.
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Size() > 0 {
			continue
		}

		path := filepath.Join(dir, e.Name())
		log.Warn("removing an empty log file that was being made or deleted when the last process ended", "file", path)
		if err := disk.Remove(path); err != nil {
			return err
		}
		removed = true
	}

	if !removed {
		return nil
	}

	return disk.SyncDir(dir)
}

// lockName is the file with the pid of the process that has the folder locked. Badger's
// own has the same name, so it shows an older promptspool as well.
const lockName = "LOCK"

// Lock keeps other processes out of a database's folder. On Linux it is the lock that Badger
// would take, an flock on the folder itself. We take it because files are removed before
// Badger opens. The kernel releases it when the process ends, however it ends.
type Lock struct {
	dir  *os.File // the folder, as it was when it was locked
	lock *os.File
}

// Acquire locks a folder, or returns an error with the process that has it locked.
func Acquire(path string) (*Lock, error) {
	lock, err := disk.LockFolder(path)
	// Not waited for: two servers on one folder are a mistake in how they were started.
	if errors.Is(err, disk.ErrLocked) {
		err = fmt.Errorf("another promptspool (%s) uses it; stop that one first, or choose another folder",
			holder(path))
	}
	if err != nil {
		return nil, err
	}

	dir, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	// For people only. The lock itself is the kernel's.
	if err := os.WriteFile(filepath.Join(path, lockName), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600); err != nil {
		return nil, errors.Join(err, dir.Close(), lock.Close())
	}
	return &Lock{dir, lock}, nil
}

// holder describes the process that has a folder locked.
func holder(path string) string {
	pid, err := os.ReadFile(filepath.Join(path, lockName))
	if err != nil || strings.TrimSpace(string(pid)) == "" {
		return "its pid is unknown"
	}
	return "pid " + strings.TrimSpace(string(pid))
}

// Path returns the folder.
func (l *Lock) Path() string { return l.dir.Name() }

// Present returns why a synced write may not be in the folder, or nil.
func (l *Lock) Present() error {
	return disk.Present(l.dir, l.dir.Name())
}

// Release unlocks the folder. Badger must have closed its files.
func (l *Lock) Release() error {
	err := disk.Remove(filepath.Join(l.dir.Name(), lockName))
	// If the folder was removed, the file is gone too.
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.dir.Close(), l.lock.Close())
}

// Format is the version of the layout of keys and of what is under them, which package badgerdb
// describes. Earlier ones, which releases wrote, are read as well; later ones are not:
//
//	1   0.1.0
//	2   heads of blocks are of version 2
//	3   records are in sets: archive.Set
//	9   bodies are packed against others, and states by themselves
const Format = 9

// formatUnreleased is the last of versions before 0.1.0, which wrote 4 to 8: after 3 comes 9.
const formatUnreleased = 8

const (
	formatName   = "FORMAT"
	formatPrefix = "promptspool database, format "
)

// Prepare makes the folder ready, or returns why it must not be opened. found is its format.
// Badger itself would start afresh over tables whose MANIFEST is missing, and delete them.
func Prepare(dir string) (found int, err error) {
	files, manifest, err := badgerFiles(dir)
	if err != nil {
		return 0, err
	}

	text, err := os.ReadFile(filepath.Join(dir, formatName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && (files || manifest):
		return 0, fmt.Errorf("%s holds a Badger database that is not ours (it has no %s file); "+
			"choose another folder", dir, formatName)
	case errors.Is(err, fs.ErrNotExist):
		return Format, WriteFormat(dir)
	case disk.IsUnreadable(err):
		return 0, fmt.Errorf("read the database's format: %w; "+
			"restore the archive from a backup (promptspool restore)", err)
	case err != nil:
		return 0, fmt.Errorf("read the database's format: %w", err)
	case files && !manifest:
		return 0, fmt.Errorf("%s holds tables but no MANIFEST, without which they cannot be read; "+
			"restore MANIFEST, or the whole folder, from a backup", dir)
	}

	return readFormat(dir, string(text))
}

// readFormat reads the content of FORMAT. It must be a format that is read.
func readFormat(dir, text string) (int, error) {
	// A torn or edited file must not be taken for a version.
	number, ok := strings.CutPrefix(strings.TrimSpace(text), formatPrefix)
	n, err := strconv.Atoi(number)

	switch {
	case !ok || err != nil || n < 1:
		return 0, fmt.Errorf("%s does not name a format; restore it from a backup", filepath.Join(dir, formatName))
	case n > 3 && n <= formatUnreleased:
		return 0, fmt.Errorf("%s was written by a version of promptspool from before 0.1.0 (database format %d), "+
			"which no release reads: choose another folder, or import what that version exports", dir, n)
	case n > Format:
		return 0, fmt.Errorf("%s was written by a newer version of promptspool (database format %d; this one reads "+
			"up to %d): run that version, or restore a backup from before the upgrade into another folder",
			dir, n, Format)
	}
	return n, nil
}

// badgerFiles reports whether the folder holds data of a Badger database, and its
// MANIFEST.
func badgerFiles(dir string) (files, manifest bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false, fmt.Errorf("read the database's folder: %w", err)
	}

	// Tables and logs are data. The MANIFEST names the tables that count, and is not data
	// by itself.
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".sst", ".vlog", ".mem":
			files = true
		}
		manifest = manifest || e.Name() == "MANIFEST"
	}
	return files, manifest, nil
}

// WriteFormat writes FORMAT. It is durable before Badger creates its first file, so a
// folder with files and no FORMAT is never ours.
func WriteFormat(dir string) error {
	path := filepath.Join(dir, formatName)
	text := fmt.Appendf(nil, "%s%d\n", formatPrefix, Format)
	if err := disk.WriteFile(path, path+".tmp", text); err != nil {
		return fmt.Errorf("write the database's format: %w", err)
	}
	return nil
}
