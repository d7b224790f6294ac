package archivetool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
)

// writeNew creates a file, whole and durable, or none. It must not exist yet.
//
// Until the file is whole it is called FILE.partial.
func writeNew(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s already exists; give a new file", path)
	}

	partial := path + ".partial"
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	// Synced before it has its name: a file of this name is always whole.
	if err := errors.Join(write(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}

	if err := os.Rename(partial, path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path)) // the new name must survive a power failure, too
}
