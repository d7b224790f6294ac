package disk

import "os"

// ReadAt reads like file.ReadAt, but fails only where a block that it needs is unreadable.
//
// The kernel reads and caches many pages as one, and where the disk cannot read a block of
// them, all of them fail.
func ReadAt(file *os.File, b []byte, offset int64) (int, error) {
	n, err := file.ReadAt(b, offset)
	if !IsUnreadable(err) {
		return n, err
	}

	ByPages(file)
	return file.ReadAt(b, offset)
}
