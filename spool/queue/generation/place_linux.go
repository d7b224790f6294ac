//go:build linux && !portable

package generation

import (
	"fmt"
	"os"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"
)

// openPath returns the path under which Badger opens a folder. It leads to the folder
// under whatever name, so that Place can rename it while the database is open.
func openPath(folder *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", folder.Fd()) }

// unplaced is what a generation that has no place yet knows of it: nothing.
//
//lint:ignore U1000 the portable form has fields
type unplaced struct{}

// prepare does nothing: the folder gets its name in place.
func (w *Writer) prepare(uint64) error { return nil }

// place gives the folder its name.
func (w *Writer) place(first uint64) error {
	placed := filepath.Join(filepath.Dir(w.dir), Name(first, 0))
	if err := os.Rename(w.dir, placed); err != nil {
		return err
	}

	w.dir = placed
	return nil
}

// remove removes the folder.
func (w *Writer) remove() error { return os.RemoveAll(w.dir) }

// readOnly makes the options those of a database that is only read.
func readOnly(options badger.Options) badger.Options { return options.WithReadOnly(true) }
