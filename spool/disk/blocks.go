package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// BlockBytes is the size of a block on most disks.
const BlockBytes = 4096

// WholeBlocks returns the disk space that this many bytes take on most disks.
func WholeBlocks(bytes int64) int64 { return (bytes + BlockBytes - 1) / BlockBytes * BlockBytes }

// Allocate gives the first bytes of a file real blocks, without changing their content.
// Writing there then succeeds on a full disk.
func Allocate(file *os.File, bytes int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return rewrite(file, bytes)
}

// rewrite does the same as Allocate on a file system that cannot reserve blocks: it
// writes what is there, and zeros after it.
func rewrite(file *os.File, bytes int64) error {
	b := make([]byte, 256<<10)
	for at := int64(0); at < bytes; at += int64(len(b)) {
		b = b[:min(int64(len(b)), bytes-at)]
		// What is already in the file must survive: the cursor is allocated each time it
		// is opened.
		n, err := file.ReadAt(b, at)
		if n < len(b) && !errors.Is(err, io.EOF) {
			return err
		}

		clear(b[n:])
		if _, err := file.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

// IsFull reports whether an error means that the disk has no room.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// RoomAdvice returns what to add to an error message when the disk is full.
func RoomAdvice(err error) string {
	if !IsFull(err) {
		return ""
	}

	return "; free space on its disk"
}

// IsBroken reports whether an error means that the disk could not write. The kernel may
// have made it read-only for that reason.
func IsBroken(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS)
}
