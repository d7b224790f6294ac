package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"promptspool/spool/disk"
)

// Format is the version of the layout of keys and of what is under them, which package badgerdb
// describes. Earlier ones, which releases wrote, are read as well; later ones are not:
//
//	1   0.1.0
//	2   heads of blocks are of version 2
//	3   records are in sets: archive.Set
const Format = 3

// formatUnreleased is the last of versions before 0.1.0, which wrote 4 to 8: after 3 comes 9.
const formatUnreleased = 8

const (
	formatName   = "FORMAT"
	formatPrefix = "promptspool database, format "
)

// Prepare makes the folder ready, or returns why it must not be opened. found is its format.
// Badger itself would start afresh over tables whose MANIFEST is missing, and delete them.
func Prepare(dir string) (found int, err error) {
	files, manifest, err := badgerFiles(dir)
	if err != nil {
		return 0, err
	}

	text, err := os.ReadFile(filepath.Join(dir, formatName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && (files || manifest):
		return 0, fmt.Errorf("%s holds a Badger database that is not ours (it has no %s file); "+
			"choose another folder", dir, formatName)
	case errors.Is(err, fs.ErrNotExist):
		return Format, WriteFormat(dir)
	case disk.IsUnreadable(err):
		return 0, fmt.Errorf("read the database's format: %w; "+
			"restore the archive from a backup (promptspool restore)", err)
	case err != nil:
		return 0, fmt.Errorf("read the database's format: %w", err)
	case files && !manifest:
		return 0, fmt.Errorf("%s holds tables but no MANIFEST, without which they cannot be read; "+
			"restore MANIFEST, or the whole folder, from a backup", dir)
	}

	return readFormat(dir, string(text))
}

// readFormat reads the content of FORMAT. It must be a format that is read.
func readFormat(dir, text string) (int, error) {
	// A torn or edited file must not be taken for a version.
	number, ok := strings.CutPrefix(strings.TrimSpace(text), formatPrefix)
	n, err := strconv.Atoi(number)

	switch {
	case !ok || err != nil || n < 1:
		return 0, fmt.Errorf("%s does not name a format; restore it from a backup", filepath.Join(dir, formatName))
	case n > 3 && n <= formatUnreleased:
		return 0, fmt.Errorf("%s was written by a version of promptspool from before 0.1.0 (database format %d), "+
			"which no release reads: choose another folder, or import what that version exports", dir, n)
	case n > Format:
		return 0, fmt.Errorf("%s was written by a newer version of promptspool (database format %d; this one reads "+
			"up to %d): run that version, or restore a backup from before the upgrade into another folder",
			dir, n, Format)
	}
	return n, nil
}

// badgerFiles reports whether the folder holds data of a Badger database, and its
// MANIFEST.
func badgerFiles(dir string) (files, manifest bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false, fmt.Errorf("read the database's folder: %w", err)
	}

	// Tables and logs are data. The MANIFEST names the tables that count, and is not data
	// by itself.
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".sst", ".vlog", ".mem":
			files = true
		}
		manifest = manifest || e.Name() == "MANIFEST"
	}
	return files, manifest, nil
}

// WriteFormat writes FORMAT. It is durable before Badger creates its first file, so a
// folder with files and no FORMAT is never ours.
func WriteFormat(dir string) error {
	path := filepath.Join(dir, formatName)
	text := fmt.Appendf(nil, "%s%d\n", formatPrefix, Format)
	if err := disk.WriteFile(path, path+".tmp", text); err != nil {
		return fmt.Errorf("write the database's format: %w", err)
	}
	return nil
}
