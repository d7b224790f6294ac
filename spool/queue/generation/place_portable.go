//go:build !linux || portable

package generation

import (
	"errors"
	"os"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
)

// openPath returns the path under which Badger opens a folder: Windows renames no folder
// with an open file in it, and elsewhere Badger would look for its files under the old name.
func openPath(folder *os.File) string { return folder.Name() }

// unplaced is what a generation that has no place yet knows of it.
type unplaced struct {
	hidden string // the name under which its folder is removed
}

// prepare gives the folder its name among the others before Badger opens a file in it, with
// the mark of one that has no place yet.
func (w *Writer) prepare(first uint64) error {
	mark := filepath.Join(w.dir, unplacedName)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if err := errors.Join(disk.SyncDir(mark), disk.SyncDir(w.dir)); err != nil {
		return err
	}

	placed := filepath.Join(filepath.Dir(w.dir), Name(first, 0))
	if err := disk.Rename(w.dir, placed); err != nil {
		return err
	}
	w.hidden, w.dir = w.dir, placed
	return nil
}

// place takes the mark away.
func (w *Writer) place(uint64) error {
	return errors.Join(disk.Remove(filepath.Join(w.dir, unplacedName)), disk.SyncDir(w.dir))
}

// remove removes the folder, under its earlier name: whatever a crash leaves of it then is
// not taken for a generation.
func (w *Writer) remove() error {
	if w.hidden != "" {
		if err := disk.Rename(w.dir, w.hidden); err != nil {
			return err
		}
		w.dir = w.hidden
	}

	return disk.RemoveAll(w.dir)
}

// readOnly makes the options those of a database that is only read. Badger takes no lock
// for that on Windows, and refuses to continue without one.
func readOnly(options badger.Options) badger.Options {
	return options.WithReadOnly(true).WithBypassLockGuard(true)
}
