//go:build !linux || portable

package disk

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// Allocate gives the first bytes of a file real blocks, without changing their content.
// Writing there then succeeds on a full disk.
func Allocate(file *os.File, bytes int64) error { return rewrite(file, bytes) }

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

// patience is how long a file that is in use is waited for. Another program, such as a
// virus scanner, may have it open for a moment.
var patience = 2 * time.Second

// Rename is os.Rename for a file or folder in which nothing is open or mapped.
func Rename(from, to string) error {
	return whenUnused(func() error { return os.Rename(from, to) }, from, to)
}

// Remove is os.Remove for a file that is neither open nor mapped.
func Remove(path string) error { return whenUnused(func() error { return os.Remove(path) }, path) }

// RemoveAll is os.RemoveAll for a file or folder in which nothing is open or mapped.
func RemoveAll(path string) error {
	return whenUnused(func() error { return os.RemoveAll(path) }, path)
}

// whenUnused calls do once nothing is open or mapped at the paths. It gives up after a
// while, with an error that IsInUse recognises.
func whenUnused(do func() error, paths ...string) error {
	for wait := time.Millisecond; ; wait *= 2 {
		// Asked first, because some systems would not refuse.
		err := checkUnused(paths)
		if err == nil {
			err = do()
		}
		if !IsInUse(err) || wait > patience/2 {
			return err
		}

		time.Sleep(wait)
	}
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
