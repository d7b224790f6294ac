// Package disk holds what the spool asks of a file system beyond package os.
//
// That is: names that survive a power failure, files with all their blocks, two numbers
// that are replaced together (Slots), locks, how much space there is, and what an error says
// about the disk. Except for Slots, everything is safe for concurrent use.
//
// Each system has its own files (*_linux.go, *_darwin.go, *_windows.go). Operations that
// only Linux has get a slower form for the others in portable.go. The build tag portable
// takes those forms on Linux as well, so that they are tested there.
package disk

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrLocked means that another process holds a lock.
var ErrLocked = errors.New("another process has locked it")

// Space is the size of a file system, in bytes.
type Space struct {
	Free  int64 // for processes without special rights
	Total int64
}

// SyncDir makes the names in a folder, or the content of a file, durable. On Windows a folder
// is left alone: NTFS has a journal of names, which each sync of a file takes along.
func SyncDir(dir string) error {
	if info, err := os.Stat(dir); !syncsFolders && err == nil && info.IsDir() {
		return nil
	}

	d, err := os.OpenFile(dir, openToSync, 0)
	if err != nil {
		return err
	}

	return errors.Join(d.Sync(), d.Close())
}

// SyncFiles makes the content of all files of a folder durable, but not their names.
func SyncFiles(dir string) error {
	files, err := os.ReadDir(dir)
	for _, f := range files {
		err = errors.Join(err, SyncDir(filepath.Join(dir, f.Name())))
	}
	return err
}

// WriteFile durably writes a file, which a crash leaves as it was before or whole. Until
// then it is at unfinished, in the same folder.
func WriteFile(path, unfinished string, content []byte) error {
	err := os.WriteFile(unfinished, content, 0o600)
	// The content is on disk before the name, and the name before this returns.
	if err == nil {
		err = SyncDir(unfinished)
	}
	if err == nil {
		err = Rename(unfinished, path)
	}
	if err != nil {
		// It must not fill a disk that is nearly full.
		_ = Remove(unfinished)
		return err
	}

	return SyncDir(filepath.Dir(path))
}

// Exists reports whether there is something at path. A link counts, wherever it leads.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Present returns an error if a sync in an open folder may not have reached the folder at
// path.
//
// Either the file system was made read-only, where ext4 syncs successfully without
// writing, or the folder was removed, moved or mounted over. Call it after the sync.
func Present(folder *os.File, path string) error {
	// Asked first: on such a file system everything else looks as it should.
	if isReadOnly(folder) {
		return fmt.Errorf("%s is on a file system that has been made read-only: %w", path, errReadOnly)
	}

	// Compare the open folder with what is found under its path now.
	opened, err := folder.Stat()
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	found, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(opened, found) {
		return fmt.Errorf("the folder %s that was opened is not there any more: "+
			"it was removed, moved or mounted over", path)
	}
	return nil
}

// IsReadOnly reports whether an error means that a file system takes no more writes. It reads the text: Badger
// keeps nothing else of an error.
func IsReadOnly(err error) bool {
	return err != nil && strings.Contains(err.Error(), errReadOnly.Error())
}

// Mapped is an open file that other code writes through a mapping.
type Mapped struct {
	file *os.File
	data []byte // the mapping
}

// OpenMapped opens a file that is mapped at data.
func OpenMapped(path string, data []byte) (Mapped, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	return Mapped{file, data}, err
}

// Close closes the file.
func (m Mapped) Close() error { return m.file.Close() }

// ReadAt reads like file.ReadAt, but fails only where a block that it needs is unreadable.
//
// The kernel reads and caches many pages as one, and where the disk cannot read a block of
// them, all of them fail.
func ReadAt(file *os.File, b []byte, offset int64) (int, error) {
	n, err := file.ReadAt(b, offset)
	if !IsUnreadable(err) {
		return n, err
	}

	ByPages(file)
	return file.ReadAt(b, offset)
}

// BlockBytes is the size of a block on most disks.
const BlockBytes = 4096

// WholeBlocks returns the disk space that this many bytes take on most disks.
func WholeBlocks(bytes int64) int64 { return (bytes + BlockBytes - 1) / BlockBytes * BlockBytes }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Used adds up the blocks of all files below a folder, without those below the folder except. A sparse file
// counts what it occupies. Files that disappear meanwhile, or cannot be read, are ignored.
func Used(dir, except string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if path == except {
			return fs.SkipDir
		}

		if info, err := d.Info(); err == nil {
			bytes += Blocks(info)
		}
		return nil
	})
	return bytes
}

// Checksum returns the CRC-32C of bytes, by which damage to them shows.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

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
