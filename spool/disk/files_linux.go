//go:build linux && !portable

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Allocate gives the first bytes of a file real blocks, without changing their content.
// Writing there then succeeds on a full disk.
func Allocate(file *os.File, bytes int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}

	return rewrite(file, bytes)
}

// DataEnd returns where the last data of a sparse file ends.
func DataEnd(file *os.File) (end int64, err error) {
	// Data may follow a hole, so each is followed to the next.
	for {
		data, err := file.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return end, nil // only holes follow
		}
		if err != nil {
			return 0, err
		}
		if end, err = file.Seek(data, unix.SEEK_HOLE); err != nil {
			return 0, err
		}
	}
}
