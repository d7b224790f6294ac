package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// IsUnreadable reports whether an error means that a block of a disk cannot be read.
func IsUnreadable(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EBADMSG) ||
		errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.ENODATA)
}
