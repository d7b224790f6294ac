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
