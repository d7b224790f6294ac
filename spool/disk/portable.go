//go:build !linux || portable

package disk

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Allocate gives the first bytes of a file real blocks, without changing their content.
// Writing there then succeeds on a full disk.
func Allocate(file *os.File, bytes int64) error { return rewrite(file, bytes) }

// Ahead reserves nothing: what Linux can do has no other form here.
type Ahead struct{}

// OpenAhead returns an Ahead that reserves nothing.
func OpenAhead(string) (*Ahead, error) { return &Ahead{}, nil }

// Reserve does nothing.
func (*Ahead) Reserve(int64) error { return nil }

// Close does nothing.
func (*Ahead) Close() error { return nil }

// chunkBytes is how much DataEnd reads at a time.
const chunkBytes = 64 << 10

// DataEnd returns where the last data of a file ends: what follows is zeros. A part that
// cannot be read counts as data.
func DataEnd(file *os.File) (int64, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}

	// From the end: of a log that was made in advance, most is zeros.
	chunk := make([]byte, chunkBytes)
	for end := info.Size(); end > 0; {
		from := (end - 1) / chunkBytes * chunkBytes
		n, err := file.ReadAt(chunk[:end-from], from)
		switch {
		case IsUnreadable(err):
			return end, nil
		case err != nil && !errors.Is(err, io.EOF):
			return 0, err
		}

		if data := bytes.TrimRight(chunk[:n], "\x00"); len(data) > 0 {
			return from + int64(len(data)), nil
		}
		end = from
	}
	return 0, nil
}

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
