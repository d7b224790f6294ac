//go:build linux

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync returns when what was written to the mapping is on the disk.
//
// It first takes the pages out of the mapping, dirty as they are: they stay in the cache of the kernel,
// which then need not protect each of them before it writes it, and do not count as this process's.
func (m Mapped) Sync() error {
	// Without it, Sync only takes longer.
	_ = unix.Madvise(m.data, unix.MADV_DONTNEED)

	return unix.Fdatasync(int(m.file.Fd()))
}

// MapWarning says what a power failure may take from a database that only msync makes
// durable. It is empty where msync suffices.
const MapWarning = ""

const mountedReadOnly = unix.ST_RDONLY

// IsUnreadable reports whether an error means that a block of a disk cannot be read.
func IsUnreadable(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADMSG) ||
		errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.ENODATA)
}

// ByPages has the kernel read and cache a file page by page from now on. It affects the
// reads through this file, not those of its mappings.
func ByPages(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)

	// Earlier reads may be cached in large parts that failed. The whole file is dropped,
	// because a part that a range only touches would stay.
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
