package disk

import (
	"errors"
	"io"
	"os"
)

// BlockBytes is the size of a block on most disks.
const BlockBytes = 4096

// WholeBlocks returns the disk space that this many bytes take on most disks.
func WholeBlocks(bytes int64) int64 { return (bytes + BlockBytes - 1) / BlockBytes * BlockBytes }

// rewrite is Allocate for a file system that cannot reserve blocks. It writes what is
// there, and zeros after it.
func rewrite(file *os.File, bytes int64) error {
	b := make([]byte, 256<<10)
	for at := int64(0); at < bytes; at += int64(len(b)) {
		b = b[:min(int64(len(b)), bytes-at)]
		// Existing contents of the file must survive: the cursor is allocated each time
		// it is opened.
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

// SpaceAdvice returns what to add to an error message when the disk is full.
func SpaceAdvice(err error) string {
	if !IsFull(err) {
		return ""
	}

	return "; free space on its disk"
}
