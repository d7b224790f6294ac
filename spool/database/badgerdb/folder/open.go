package folder

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
