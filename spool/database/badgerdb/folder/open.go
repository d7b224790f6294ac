package folder

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

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
