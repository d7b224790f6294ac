package badgerdb

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// openBadger opens Badger's files, after those that the disk cannot read were replaced. It returns
// how many bytes were lost with that. The caller has locked the folder.
func openBadger(options badger.Options, log *slog.Logger, readAll bool) (db *badger.DB, lost int64, err error) {
	s := salvage{dir: options.Dir, readAll: readAll, logger: log}
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

// removeEmptyLogs removes the logs of 0 bytes that a kill leaves where Badger makes a log, which
// it sizes after naming it, or deletes one, which it cuts first. Badger refuses to open them.
// Nothing refers to them: a log is sized before it is written, and cut once all in it is elsewhere.
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
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Size() > 0 {
			continue
		}

		path := filepath.Join(dir, e.Name())
		log.Warn("removing an empty log file that was being made or deleted when the last process ended", "file", path)
		if err := os.Remove(path); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return syncDir(dir)
}
