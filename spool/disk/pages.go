package disk

import "os"

// Mapped is an open file that other code writes through a mapping.
type Mapped struct {
	file *os.File
	data []byte // the mapping
}

// OpenMapped opens a file that is mapped at data.
func OpenMapped(path string, data []byte) (Mapped, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	return Mapped{file, data}, err
}

// Close closes the file.
func (m Mapped) Close() error { return m.file.Close() }

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
