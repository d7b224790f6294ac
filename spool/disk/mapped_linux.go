//go:build linux

package disk

import "golang.org/x/sys/unix"

// Sync returns when what was written to the mapping is on the disk.
//
// It first takes the pages out of the mapping, dirty as they are: they stay in the cache of the kernel,
// which then need not protect each of them before it writes it, and do not count as this process's.
func (m Mapped) Sync() error {
	_ = unix.Madvise(m.data, unix.MADV_DONTNEED) // without it, Sync only takes longer

	return unix.Fdatasync(int(m.file.Fd()))
}
