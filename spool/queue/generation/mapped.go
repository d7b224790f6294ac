package generation

import (
	"errors"
	"reflect"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
)

// mapped is the files that Badger writes through mappings, to sync them after a commit.
//
// Badger could sync them itself, with SyncWrites. But its msync does not empty the cache of a
// Mac's disk, and does nothing on Windows. On Linux it is slower than an fdatasync: see
// "Measurements" in package queue.
type mapped []disk.Mapped

// openMapped opens the files of a new database: one value log and one write-ahead log,
// see reserve. They are synced in this order.
func openMapped(db *badger.DB) (m mapped, err error) {
	maps := mappings(db)
	for i, suffix := range []string{".vlog", ".mem"} {
		paths, err := filesBySuffix(db.Opts().Dir, suffix)
		if err != nil {
			return m, err
		}

		for _, path := range paths {
			file, err := disk.OpenMapped(path, maps[i])
			if err != nil {
				return m, err
			}
			m = append(m, file)
		}
	}

	return m, nil
}

// sync returns when everything written is on the disk.
func (m mapped) sync() error {
	for _, file := range m {
		if err := file.Sync(); err != nil {
			return err
		}
	}

	return nil
}

func (m mapped) close() error {
	var errs []error
	for _, file := range m {
		errs = append(errs, file.Close())
	}

	return errors.Join(errs...)
}

// syncClosed syncs the files of a database that is closed.
func syncClosed(dir string) error {
	paths, err := filesBySuffix(dir, "")
	for _, path := range paths {
		err = errors.Join(err, disk.SyncDir(path))
	}

	return err
}

// mappings returns the memory through which Badger writes the value log and the write-ahead
// log of a new database. Windows syncs a mapping only by its address, for which Badger has
// no method.
func mappings(db *badger.DB) [2][]byte {
	of := func(log reflect.Value) []byte {
		return log.Elem().FieldByName("MmapFile").Elem().FieldByName("Data").Bytes()
	}

	fields := reflect.ValueOf(db).Elem()
	valueLogs := fields.FieldByName("vlog").FieldByName("filesMap").MapRange()
	valueLogs.Next()

	return [2][]byte{of(valueLogs.Value()), of(fields.FieldByName("mt").Elem().FieldByName("wal"))}
}
