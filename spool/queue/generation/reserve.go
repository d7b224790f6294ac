package generation

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
)

// Badger writes through mappings of files with holes in them. When the disk has no block
// for such a hole, the kernel sends SIGBUS, which ends the process, so Badger must never
// meet a full disk. This file gives a generation all its blocks when it is made. From
// then on it takes no more, and commits succeed even when the disk is full.

// Space returns the disk space that a generation of this capacity takes.
func Space(capacity int64) int64 {
	if !disk.HasHoles { // Badger makes both files twice as long as they may become
		return 2*(valueLogBytes(capacity)+memTableBytes) + smallFilesSpace
	}

	return valueLogSpace(capacity) + writeAheadSpace(capacity) + smallFilesSpace
}

// valueLogSpace returns the space for the value log. HasSpace counts more for each frame
// than it takes.
func valueLogSpace(capacity int64) int64 { return disk.WholeBlocks(capacity) + disk.BlockBytes }

// writeAheadSpace returns the space for the write-ahead log, where a frame takes at most
// 128 bytes, including the end of its transaction.
func writeAheadSpace(capacity int64) int64 {
	return disk.WholeBlocks(min(framesMax, capacity/frameOverheadBytes)*128) + disk.BlockBytes
}

// smallFilesSpace is for the folder, MANIFEST, KEYREGISTRY, DISCARD and SEAL, a block
// each, and for the file system's own structures.
const smallFilesSpace = 64 << 10

// reserve gives the files of a new generation all the blocks that will be written.
func reserve(dir string, capacity int64) error {
	// Badger made both files, with holes in them. There is exactly one of each in a new
	// generation, and no second one later: see framesMax and generationOptions.
	spaces := map[string]int64{".vlog": valueLogSpace(capacity), ".mem": writeAheadSpace(capacity)}
	for suffix, space := range spaces {
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
		if err := errors.Join(disk.Allocate(file, space), file.Close()); err != nil {
			return fmt.Errorf("cannot reserve %d bytes for %s: %w", space, paths[0], err)
		}
	}
	return nil
}

// openWritable opens a database for writing. Badger writes the headers of its files
// through mappings, before reserve can give them blocks. If another process fills the
// disk in that moment, openWritable returns an error instead of ending the process.
func openWritable(options badger.Options) (db *badger.DB, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			db, err = nil, fmt.Errorf("badger met a full disk (%v): %w", fault, disk.ErrFull)
		}
	}()

	return badger.Open(options)
}
