package folder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"promptspool/spool/rawlog"
)

// lockName is the file with the pid of the process that has the folder locked. Badger's
// own has the same name, so it shows an older promptspool as well.
const lockName = "LOCK"

// Lock keeps other processes out of a database's folder. It is the lock that Badger
// would take, an flock on the folder itself. We take it because files are removed before
// Badger opens. The kernel releases it when the process ends, however it ends.
type Lock struct{ dir *os.File }

// Acquire locks a folder, or returns an error with the process that has it locked.
func Acquire(path string) (*Lock, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}

	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	// Not waited for: two servers on one folder are a mistake in how they were started.
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another promptspool (%s) uses it; stop that one first, or choose another folder",
			holder(path))
	}

	// For people only. The lock itself is the kernel's.
	if err == nil {
		err = os.WriteFile(filepath.Join(path, lockName), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Lock{dir}, nil
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
	return rawlog.Present(l.dir, l.dir.Name())
}

// Release unlocks the folder. Badger must have closed its files.
func (l *Lock) Release() error {
	err := os.Remove(filepath.Join(l.dir.Name(), lockName))
	// Whoever removed the folder has removed the file too.
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.dir.Close())
}
