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

// Ahead reserves blocks of a sparse file that others fill from its start through a mapping. A
// full disk then refuses the blocks, instead of ending the process at a write. Not safe for
// concurrent use. After Close its blocks stay until its owner cuts it.
type Ahead struct {
	*os.File
	end, reserved int64 // of the data and of the blocks, at the last call
}

// OpenAhead opens a file to reserve blocks of it. Nothing is in it yet.
func OpenAhead(path string) (*Ahead, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &Ahead{File: file}, nil
}

// Reserve returns when the next bytes after the file's data have blocks. Some more have, so that
// most calls find them, and others that are not filled are given back. It does nothing on a
// file system that cannot reserve blocks.
func (a *Ahead) Reserve(bytes int64) error {
	const step = 8 << 20

	end, err := dataEnd(a.File, a.end)
	if err != nil {
		return err
	}
	a.end = end

	// A tmpfs makes data of a block that was reserved in part.
	need, until := end+bytes, WholeBlocks(end+bytes+step)
	// The size is its owner's.
	from, mode := max(end, a.reserved), uint32(unix.FALLOC_FL_KEEP_SIZE)
	switch {
	case until+4*step < a.reserved:
		err = unix.Fallocate(int(a.File.Fd()), mode|unix.FALLOC_FL_PUNCH_HOLE, until, a.reserved-until)
	case need > a.reserved:
		err = unix.Fallocate(int(a.File.Fd()), mode, from, until-from)
	default:
		return nil
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err == nil {
		a.reserved = until
	}

	return err
}

// DataEnd returns where the last data of a sparse file ends.
func DataEnd(file *os.File) (int64, error) { return dataEnd(file, 0) }

// dataEnd is DataEnd for a file whose data end there or later.
func dataEnd(file *os.File, end int64) (int64, error) {
	// Data may follow a hole, so each is followed to the next.
	for {
		data, err := file.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			// Only holes follow.
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		end, err = file.Seek(data, unix.SEEK_HOLE)
		if err != nil {
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
