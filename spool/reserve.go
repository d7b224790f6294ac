package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	badger "github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"
)

// Badger writes through mappings of files with holes in them. When the disk has no block
// for such a hole, the kernel sends SIGBUS, which ends the process, so Badger must never
// meet a full disk. This file gives a generation all its blocks when it is made. From
// then on it takes no more, and commits succeed even when the disk is full.

// generationRoom returns the disk space that a generation of this capacity takes.
func generationRoom(capacity int64) int64 {
	return valueLogRoom(capacity) + writeAheadRoom(capacity) + smallFilesRoom
}

// valueLogRoom returns the room for the value log. hasRoom counts more for each frame
// than it takes.
func valueLogRoom(capacity int64) int64 { return wholeBlocks(capacity) + blockBytes }

// writeAheadRoom returns the room for the write-ahead log, where a frame takes at most
// 128 bytes, including the end of a transaction of its own.
func writeAheadRoom(capacity int64) int64 {
	return wholeBlocks(min(generationFramesMax, capacity/frameOverheadBytes)*128) + blockBytes
}

// smallFilesRoom is for the folder, MANIFEST, KEYREGISTRY, DISCARD and SEAL, a block
// each, and for the file system's own records.
const smallFilesRoom = 64 << 10

const blockBytes = 4096

// wholeBlocks returns the disk space that this many bytes take on most disks.
func wholeBlocks(bytes int64) int64 { return (bytes + blockBytes - 1) / blockBytes * blockBytes }

// reserve gives the files of a new generation all the blocks that will be written.
func reserve(dir string, capacity int64) error {
	rooms := map[string]int64{".vlog": valueLogRoom(capacity), ".mem": writeAheadRoom(capacity)}
	for suffix, room := range rooms {
		paths, err := filesBySuffix(dir, suffix)
		if err != nil {
			return err
		}
		if len(paths) != 1 {
			return fmt.Errorf("%d files *%s in a new generation", len(paths), suffix)
		}

		file, err := os.OpenFile(paths[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(allocate(file, room), file.Close()); err != nil {
			return fmt.Errorf("cannot reserve %d bytes for %s: %w", room, paths[0], err)
		}
	}
	return nil
}

// allocate gives the first bytes of a file real blocks, without changing their content.
func allocate(file *os.File, bytes int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, bytes)
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return rewrite(file, bytes)
}

// rewrite does the same as allocate on a file system that cannot reserve blocks: it
// writes what is there, and zeros after it.
func rewrite(file *os.File, bytes int64) error {
	b := make([]byte, 256<<10)
	for at := int64(0); at < bytes; at += int64(len(b)) {
		b = b[:min(int64(len(b)), bytes-at)]
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

// isFull reports whether an error means that the disk has no room.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// roomAdvice returns what to add to an error message when the disk is full.
func roomAdvice(err error) string {
	if !isFull(err) {
		return ""
	}

	return "; free space on its disk"
}

// isBroken reports whether an error means that the disk could not write, or that the
// kernel has made it read-only for that reason.
func isBroken(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EROFS)
}

// openWritable opens a database for writing. Badger writes the headers of its files
// through mappings, before reserve can give them blocks. If another process fills the
// disk in that moment, openWritable returns an error instead of ending the process.
func openWritable(options badger.Options) (db *badger.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			db, err = nil, fmt.Errorf("badger met a full disk (%v): %w", fault, unix.ENOSPC)
		}
	}()

	return badger.Open(options)
}
