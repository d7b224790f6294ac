//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const errReadOnly = unix.EROFS

const syncsFolders = true

// HasHoles reports whether a part of a file that was never written takes no space.
const HasHoles = true

// openToSync is how a file or folder is opened to be synced.
const openToSync = os.O_RDONLY

// ErrFull is the system's error for a disk without space, and ErrBroken the one for a disk
// that failed.
const (
	ErrFull   = unix.ENOSPC
	ErrBroken = unix.EIO
)

// IsFull reports whether an error means that the disk, or the user's part of it, has no
// space.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// IsBroken reports whether an error means that the disk could not write. The kernel may
// have made it read-only for that reason.
func IsBroken(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS)
}

// SpaceAt returns the space of the file system that a path is on.
func SpaceAt(path string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	block := int64(st.Bsize)
	return Space{Free: int64(st.Bavail) * block, Total: int64(st.Blocks) * block}, nil
}

func isReadOnly(folder *os.File) bool {
	// Of the open folder: something else may be mounted over its path by now.
	var st unix.Statfs_t
	err := unix.Fstatfs(int(folder.Fd()), &st)
	return err == nil && st.Flags&mountedReadOnly != 0
}

// Blocks returns how many bytes of the disk a file takes, which differs from its size if
// it has holes.
func Blocks(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		// This is the kernel's unit, whatever the block size of the file system.
		return st.Blocks * 512
	}

	return info.Size()
}

// Lock locks an open file or folder for this process alone, or returns ErrLocked. The
// kernel releases the lock when the file is closed or the process ends, however it ends.
func Lock(file *os.File) error { return flock(file, unix.LOCK_EX) }

// Share is Lock, beside others that share.
func Share(file *os.File) error { return flock(file, unix.LOCK_SH) }

func flock(file *os.File, how int) error {
	// Not waited for: its holder may run for months.
	err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}

	return err
}

// LockFolder opens a folder and locks it, as Lock does.
func LockFolder(path string) (*os.File, error) {
	// The folder itself is locked, so no file is left in it after a kill.
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := Lock(folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}

	return folder, nil
}

// Rename is os.Rename.
func Rename(from, to string) error { return os.Rename(from, to) }

// Remove is os.Remove.
func Remove(path string) error { return os.Remove(path) }

// RemoveAll is os.RemoveAll.
func RemoveAll(path string) error { return os.RemoveAll(path) }

// IsInUse reports whether a file could not be renamed or removed because it is in use.
// Unix renames and removes it even then.
func IsInUse(error) bool { return false }
