package disk

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Sync returns when what was written to the mapping is on the disk.
func (m Mapped) Sync() error {
	err := windows.FlushViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(m.data))), uintptr(len(m.data)))
	if err != nil {
		return fmt.Errorf("FlushViewOfFile %s: %w", m.file.Name(), err)
	}

	return m.file.Sync() // FlushFileBuffers, which empties the cache of the disk as well
}
