//go:build linux && !portable

package disk

import (
	"errors"
	"io"
	"os"
)

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
