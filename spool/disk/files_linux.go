//go:build linux && !portable

package disk

import (
	"errors"
	"io"
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

// Snapshot is a file that is read as it was when it was opened. It may be replaced or
// removed meanwhile.
type Snapshot struct {
	*io.SectionReader
	file *os.File
}

// OpenSnapshot opens a file that is never changed; Close it afterwards.
func OpenSnapshot(path string) (Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return Snapshot{}, err
	}
	info, err := file.Stat()
	if err != nil {
		return Snapshot{}, errors.Join(err, file.Close())
	}

	return Snapshot{io.NewSectionReader(file, 0, info.Size()), file}, nil
}

// Close ends the reading.
func (s Snapshot) Close() error { return s.file.Close() }
