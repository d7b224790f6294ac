package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const errReadOnly = windows.ERROR_WRITE_PROTECT

const syncsFolders = false

// HasHoles reports whether a part of a file that was never written takes no space.
const HasHoles = false

// openToSync is how a file is opened to be synced.
const openToSync = os.O_RDWR

// ErrFull is the system's error for a disk without space, and ErrBroken the one for a disk
// that failed.
const (
	ErrFull   = windows.ERROR_DISK_FULL
	ErrBroken = windows.ERROR_IO_DEVICE
)

// IsFull reports whether an error means that the disk, or the user's part of it, has no
// space.
func IsFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) ||
		errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}

// IsBroken reports whether an error means that the disk could not write, or is read-only.
func IsBroken(err error) bool {
	return errors.Is(err, windows.ERROR_IO_DEVICE) || errors.Is(err, windows.ERROR_WRITE_FAULT) ||
		errors.Is(err, windows.ERROR_WRITE_PROTECT)
}

// IsUnreadable reports whether an error means that a block of a disk cannot be read.
func IsUnreadable(err error) bool {
	return errors.Is(err, windows.ERROR_CRC) || errors.Is(err, windows.ERROR_READ_FAULT) ||
		errors.Is(err, windows.ERROR_IO_DEVICE) || errors.Is(err, windows.ERROR_FILE_CORRUPT)
}

// Blocks returns how many bytes of the disk a file takes. NTFS makes no holes unless a
// program asks for them, and Badger does not.
func Blocks(info fs.FileInfo) int64 { return info.Size() }

// Lock locks an open file for this process alone, or returns ErrLocked. The kernel
// releases the lock when the file is closed or the process ends, however it ends.
func Lock(file *os.File) error { return lock(file, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// Share is Lock, beside others that share.
func Share(file *os.File) error { return lock(file, 0) }

// lock locks a byte far beyond the end, so that others may still read in a locked file
// who holds it.
func lock(file *os.File, flags uint32) error {
	// Not waited for: its holder may run for months.
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}

	return err
}

// folderLockName is the file that is locked for its folder: folders themselves cannot be.
const folderLockName = "LOCKED"

// LockFolder locks a folder for this process until the file that it returns is closed.
func LockFolder(path string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(path, folderLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := Lock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}

	return file, nil
}

// MapWarning says what a power failure may take from a database that only msync makes
// durable.
const MapWarning = "a power failure, or a crash of Windows, may take the last writes of this database, " +
	"because Badger does not sync its files on Windows"

// SpaceAt returns the space of the file system that a path is on.
func SpaceAt(path string) (Space, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Space{}, err
	}

	// The bytes free for this user, whose quota may be less than the free space of the
	// disk.
	var free, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, &all); err != nil {
		return Space{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: path, Err: err}
	}

	return Space{Free: int64(free), Total: int64(total)}, nil
}

// isReadOnly reports false: a sync on a volume that became read-only fails here.
func isReadOnly(*os.File) bool { return false }

// Sync returns when what was written to the mapping is on the disk.
func (m Mapped) Sync() error {
	err := windows.FlushViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(m.data))), uintptr(len(m.data)))
	if err != nil {
		return fmt.Errorf("FlushViewOfFile %s: %w", m.file.Name(), err)
	}

	// This is FlushFileBuffers, which empties the cache of the disk as well.
	return m.file.Sync()
}

// IsInUse reports whether a file could not be renamed or removed because it is in use.
func IsInUse(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) ||
		errors.Is(err, windows.ERROR_USER_MAPPED_FILE) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// patience is how long a file that is in use is waited for. Another program, such as a
// virus scanner, may have it open for a moment.
const patience = 2 * time.Second

// Rename is os.Rename for a file or folder in which nothing is open or mapped.
func Rename(from, to string) error {
	return whenUnused(func() error { return os.Rename(from, to) })
}

// Remove is os.Remove for a file that is neither open nor mapped.
func Remove(path string) error { return whenUnused(func() error { return os.Remove(path) }) }

// RemoveAll is os.RemoveAll for a file or folder in which nothing is open or mapped.
func RemoveAll(path string) error { return whenUnused(func() error { return os.RemoveAll(path) }) }

// whenUnused calls do until nothing is in use, for a while at most. The error is then one
// that IsInUse recognises.
func whenUnused(do func() error) error {
	for wait := time.Millisecond; ; wait *= 2 {
		if err := do(); !IsInUse(err) || wait > patience/2 {
			return err
		}
		time.Sleep(wait)
	}
}
