//go:build !linux || portable

package disk

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Snapshot is a file that is read as it was when it was opened. It may be replaced or
// removed meanwhile: it is in memory, because Windows replaces and removes no open file.
type Snapshot struct{ *io.SectionReader }

// OpenSnapshot reads a file that is never changed. It has zeros in the place of blocks that
// the disk cannot read.
func OpenSnapshot(path string) (Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return Snapshot{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Snapshot{}, err
	}

	content := make([]byte, info.Size())
	_, err = file.ReadAt(content, 0)
	// One bad block must not take the good ones with it.
	if IsUnreadable(err) {
		err = readGoodBlocks(file, content)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Snapshot{}, err
	}

	return Snapshot{io.NewSectionReader(bytes.NewReader(content), 0, info.Size())}, nil
}

func readGoodBlocks(file *os.File, content []byte) error {
	clear(content)
	for at := 0; at < len(content); at += BlockBytes {
		_, err := file.ReadAt(content[at:min(at+BlockBytes, len(content))], int64(at))
		if err != nil && !IsUnreadable(err) {
			return err
		}
	}

	return nil
}

// Close ends the reading.
func (s Snapshot) Close() error { return nil }
