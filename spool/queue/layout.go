package queue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"promptspool/spool/disk"
)

// Names in the spool's folder besides those of generations.
const (
	formatName     = "FORMAT"
	lockName       = "LOCK"
	cursorName     = "cursor"
	quarantineName = "quarantine"
	ballastName    = "ballast"
)

const (
	formatPrefix  = "promptspool spool format "
	formatVersion = 1
	cursorMagic   = "PSC\x01"
)

// checkFormat writes FORMAT in a new folder. It rejects a folder whose FORMAT is newer,
// unreadable, or missing although there is data: unreadable data is never replaced by
// something empty.
func checkFormat(dir string) error {
	path := filepath.Join(dir, formatName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return createFormat(dir, path)
	}
	if disk.IsUnreadable(err) {
		return fmt.Errorf("spool: %w; if the folder is a spool of this version, "+
			"remove the file and write %q into a new one", err, formatPrefix+"1")
	}
	if err != nil {
		return err
	}

	version, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), formatPrefix)))
	if err != nil || version < 1 || !strings.HasPrefix(string(text), formatPrefix) {
		return fmt.Errorf("spool: %s does not say a format; if the folder is a spool, write %q into it",
			path, formatPrefix+"1")
	}
	if version > formatVersion {
		return fmt.Errorf("spool: %s was written by a newer version of promptspool (spool format %d; this one "+
			"reads up to %d): run that version, or deliver what is in it with its \"promptspool spool drain\" and "+
			"choose an empty folder", dir, version, formatVersion)
	}
	return nil
}

func createFormat(dir, path string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	// The lock is taken before this, and a crash may have left FORMAT.new. Anything else
	// may be data that this version does not know.
	for _, e := range entries {
		if name := e.Name(); name != lockName && !strings.HasPrefix(name, formatName) {
			return fmt.Errorf("spool: %s is not empty (%s) and has no %s file; "+
				"choose an empty folder, or if it is a spool, write %q into %s",
				dir, name, formatName, formatPrefix+"1", path)
		}
	}

	text := fmt.Appendf(nil, "%s%d\n", formatPrefix, formatVersion)
	if err := disk.WriteFile(path, path+".new", text); err != nil {
		return err
	}
	// The folder may be new as well: without its own name on the disk, a power failure
	// would take everything in it.
	return disk.SyncDir(filepath.Dir(dir))
}

// dirLock keeps a second process out of a folder. The kernel releases it when the process
// ends, in whatever way it ends.
type dirLock struct {
	file   *os.File
	folder *os.File // the folder itself, as it was when it was locked
}

func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := disk.Lock(file); err != nil {
		return nil, errors.Join(inUse(dir, file, err), file.Close())
	}

	// Overwrite the earlier pid without truncating the file, which takes no block of a
	// full disk.
	_, err = file.WriteAt(fmt.Appendf(nil, "%-19d\n", os.Getpid()), 0)
	if err != nil && !disk.IsUnreadable(err) {
		return nil, errors.Join(err, file.Close())
	}

	// Kept open to notice when the folder at this path becomes another one: see
	// disk.Present.
	folder, err := os.Open(dir)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &dirLock{file, folder}, nil
}

// inUse returns the error for a folder whose lock file is locked by another process.
func inUse(dir string, file *os.File, err error) error {
	// The pid is for people only. The lock itself is the kernel's.
	holder := make([]byte, 20)
	n, _ := file.ReadAt(holder, 0)
	return fmt.Errorf("spool: %s is in use by another process (%s); "+
		"stop it, or give this one its own folder: %w", dir, strings.TrimSpace("pid "+string(holder[:n])), err)
}

func (l *dirLock) release() error { return errors.Join(l.folder.Close(), l.file.Close()) }
