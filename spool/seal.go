package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
	"promptspool/spool/rawlog"
)

// A sealed generation has a file SEAL: one line with name, size and CRC32C for each of
// Badger's files except the value log, whose frames have checksums of their own. Badger
// ends the process on some damaged tables, and opens others without their events. So
// Badger never again sees a generation whose files do not match its SEAL.
const sealName = "SEAL"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errUnsealed = errors.New("its files do not match its SEAL")

// errUnreadable means that the disk cannot read a part of a sealed generation.
var errUnreadable = errors.New("the disk cannot read a part of it")

// closeSealed closes a generation for good and seals it.
func closeSealed(db *badger.DB) error {
	dir := db.Opts().Dir
	CrashPoint(CrashGenerationSeal)
	if err := errors.Join(db.Close(), tighten(dir)); err != nil {
		return err
	}
	CrashPoint(CrashGenerationClosed)

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

// isSealed reports whether a generation was closed in order and its files are what they
// were then. A file that the disk cannot read counts as different.
func isSealed(dir string) (bool, error) {
	seal, err := os.ReadFile(filepath.Join(dir, sealName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if rawlog.Unreadable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	files, err := describeFiles(dir)
	if rawlog.Unreadable(err) {
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
		name := filepath.Base(path)
		if name == sealName || name == "LOCK" || name == "DISCARD" || strings.HasSuffix(name, ".vlog") {
			continue
		}

		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, "%s %d %08x\n", name, len(data), crc32.Checksum(data, castagnoli))
	}
	return text, nil
}
