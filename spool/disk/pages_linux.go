package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// ByPages has the kernel read and cache a file page by page from now on. It affects the
// reads through this file, not those of its mappings.
func ByPages(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)

	// Earlier reads may be cached in large parts that failed. The whole file is dropped,
	// because a part that a range only touches would stay.
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
