package generation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/crashpoint"
	"promptspool/spool/disk"
)

// A sealed generation has a file SEAL: one line with name, size and CRC32C for each of
// Badger's files except the value log, whose frames have their own checksums. Badger ends
// the process on some damaged tables, and opens others without their events. So Badger
// never again sees a generation whose files do not match its SEAL.
const sealName = "SEAL"

var (
	// ErrUnsealed means that a generation was not closed in order, or changed since.
	ErrUnsealed = errors.New("its files do not match its SEAL")
	// ErrUnreadable means that the disk cannot read a part of a sealed generation.
	ErrUnreadable = errors.New("the disk cannot read a part of it")
)

// closeSealed closes a generation for good and seals it.
func closeSealed(db *badger.DB) error {
	dir := db.Opts().Dir
	crashpoint.Reach(crashpoint.GenerationSeal)
	if err := errors.Join(db.Close(), syncClosed(dir), tighten(dir)); err != nil {
		return err
	}
	crashpoint.Reach(crashpoint.GenerationClosed)

	seal, err := describeFiles(dir)
	if err != nil {
		return err
	}

	// A torn SEAL does no harm: it does not match, and the generation is rebuilt.
	path := filepath.Join(dir, sealName)
	if err := os.WriteFile(path, seal, 0o600); err != nil {
		return err
	}
	return errors.Join(disk.SyncDir(path), disk.SyncDir(dir))
}

// IsSealed reports whether a generation was closed in order and its files are what they
// were then. A file that the disk cannot read counts as different.
func IsSealed(dir string) (bool, error) {
	seal, err := os.ReadFile(filepath.Join(dir, sealName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if disk.IsUnreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	// Not an error: the caller rebuilds what does not match, from what can be read.
	files, err := describeFiles(dir)
	if disk.IsUnreadable(err) {
		return false, nil
	}
	return bytes.Equal(seal, files), err
}

// describeFiles returns the content of SEAL. It reads some 60 bytes for each frame of the
// generation.
func describeFiles(dir string) ([]byte, error) {
	paths, err := filesBySuffix(dir, "")
	if err != nil {
		return nil, err
	}

	var text []byte
	for _, path := range paths {
		// LOCK and DISCARD say nothing about events.
		name := filepath.Base(path)
		if name == sealName || name == "LOCK" || name == "DISCARD" || strings.HasSuffix(name, ".vlog") {
			continue
		}

		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%s %d %08x\n", name, len(data), disk.Checksum(data))
	}
	return text, nil
}

// Unseal makes a sealed generation count as one that was not closed in order. It does
// nothing to one that is not sealed.
func Unseal(dir string) error {
	seal := filepath.Join(dir, sealName)
	// A generation that was never sealed may have to be rebuilt, too.
	if !disk.Exists(seal) {
		return nil
	}
	return errors.Join(disk.Remove(seal), disk.SyncDir(dir))
}

// Replay lets Badger replay the log of a generation that was not closed, and seals it.
//
// Only a generation whose evidence agrees may be replayed: Badger cuts off what it finds
// wrong. generationBytes is the usual capacity.
func Replay(dir string, generationBytes int64, log Log) error {
	if err := CheckManifest(dir); err != nil {
		return err
	}

	db, err := openWritable(generationOptions(dir, generationBytes, log))
	if err != nil {
		return err
	}
	return closeSealed(db)
}
