package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// ByPages has the kernel read and cache a file page by page from now on. It affects the
// reads through this file, not those of its mappings.
func ByPages(file *os.File) {
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM)

	// What it read before may be cached in large parts that failed. In whole: a part that
	// is only touched by a range stays.
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED)
}
