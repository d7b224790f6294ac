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
