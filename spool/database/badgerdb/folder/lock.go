package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"promptspool/spool/disk"
)

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
