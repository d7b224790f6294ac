package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Sync returns when what was written to the mapping is on the disk.
func (m Mapped) Sync() error {
	if err := unix.Msync(m.data, unix.MS_SYNC); err != nil {
		return fmt.Errorf("msync %s: %w", m.file.Name(), err)
	}

	// This is F_FULLFSYNC, which empties the cache of the disk as well.
	return m.file.Sync()
}

// MapWarning says what a power failure may take from a database that only msync makes
// durable.
const MapWarning = "a power failure may take the last writes of this database, " +
	"because msync does not empty the cache of a Mac's disk"

const mountedReadOnly = unix.MNT_RDONLY

// IsUnreadable reports whether an error means that a block of a disk cannot be read.
func IsUnreadable(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADMSG)
}
