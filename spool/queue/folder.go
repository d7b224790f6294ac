package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"promptspool/spool/disk"
	"promptspool/spool/queue/lane"
)

// Folder gives read-only access to the folder of a spool that no process has open.
//
// It changes nothing, so the folder may be on a disk that is mounted read-only. Several
// processes may have a Folder open at the same time, but no sidecar can start meanwhile.
// Not safe for concurrent use.
type Folder struct {
	dir    string
	lock   *os.File // nil when the folder has no LOCK, as a copy may not
	cursor *cursor  // without its file
	lanes  lane.Folder
}

// OpenFolder opens the folder of a spool for reading; Close it afterwards. It rejects a
// folder that is not a spool, that a process uses, or whose format is newer.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir}
	if !disk.Exists(f.path(formatName)) {
		return nil, fmt.Errorf("spool: %s is not a spool: it has no %s file; give the data folder of a sidecar",
			dir, formatName)
	}
	if err := checkFormat(dir); err != nil {
		return nil, err
	}

	var err error
	if f.lock, err = shareDir(dir); err != nil {
		return nil, err
	}

	// Under the lock, so that no sidecar changes these files while they are read.
	if f.cursor, err = peekCursor(f.path(cursorName)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.lanes, err = lane.PeekFolder(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// shareDir takes a shared lock of the folder: it keeps out a process that would change
// the folder, but not one that only reads. It returns nil for a folder without LOCK.
func shareDir(dir string) (*os.File, error) {
	file, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	// Without waiting: a sidecar keeps its lock for as long as it runs.
	if err := disk.Share(file); err != nil {
		return nil, errors.Join(inUse(dir, file, err), file.Close())
	}
	return file, nil
}

// Close releases the folder.
func (f *Folder) Close() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Close()
}

func (f *Folder) path(elements ...string) string {
	return filepath.Join(append([]string{f.dir}, elements...)...)
}
