package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Sync returns when what was written to the mapping is on the disk.
func (m Mapped) Sync() error {
	if err := unix.Msync(m.data, unix.MS_SYNC); err != nil {
		return fmt.Errorf("msync %s: %w", m.file.Name(), err)
	}

	return m.file.Sync() // F_FULLFSYNC, which empties the cache of the disk as well
}
