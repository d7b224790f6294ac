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

// Format is the version of the layout of keys, which package badgerdb describes. A change
// of the layout increments it and says how the previous version is read:
//
//	4   the first that is read
//	5   deltas, which an earlier version would miss. A folder of format 4 has none, and becomes
//	    format 5 when it is opened
//	6   spans, likewise
//	7   rows are placed by list time, those of earlier states by order time, which an earlier
//	    version would take for the place of all. Format 6 becomes 7 when it is opened
//	8   links, which an earlier version would not keep. Format 7 has none, and becomes 8 likewise
const (
	Format      = 8
	formatFirst = 4
)

const (
	formatName   = "FORMAT"
	formatPrefix = "promptspool database, format "
)

// Prepare makes the folder ready, or returns why it must not be opened. Badger itself
// would start afresh over tables whose MANIFEST is missing, and delete them.
func Prepare(dir string) error {
	files, manifest, err := badgerFiles(dir)
	if err != nil {
		return err
	}

	text, err := os.ReadFile(filepath.Join(dir, formatName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && (files || manifest):
		return fmt.Errorf("%s holds a Badger database that is not ours (it has no %s file); "+
			"choose another folder", dir, formatName)
	case errors.Is(err, fs.ErrNotExist):
		return WriteFormat(dir, Format)
	case disk.IsUnreadable(err):
		return fmt.Errorf("read the database's format: %w; "+
			"restore the archive from a backup (promptspool restore)", err)
	case err != nil:
		return fmt.Errorf("read the database's format: %w", err)
	case files && !manifest:
		return fmt.Errorf("%s holds tables but no MANIFEST, without which they cannot be read; "+
			"restore MANIFEST, or the whole folder, from a backup", dir)
	}

	n, err := readFormat(dir, string(text))
	if err != nil || n == Format {
		return err
	}

	// Now, before anything is written that an older version would misread.
	return WriteFormat(dir, Format)
}

// readFormat reads the content of FORMAT. It returns an error for a version that cannot
// be opened.
func readFormat(dir, text string) (n int, err error) {
	// A torn or edited file must not be taken for a version.
	number, ok := strings.CutPrefix(strings.TrimSpace(text), formatPrefix)
	n, err = strconv.Atoi(number)

	switch {
	case !ok || err != nil || n < 1:
		return 0, fmt.Errorf("%s does not name a format; restore it from a backup", filepath.Join(dir, formatName))
	case n < formatFirst: // written between two releases, never by one
		return 0, fmt.Errorf("%s was written by an unreleased promptspool (format %d, this one knows %d); "+
			"choose an empty folder", dir, n, Format)
	case n > Format:
		return 0, fmt.Errorf("%s was written by a newer promptspool (format %d, this one knows %d); "+
			"run that version or a newer one", dir, n, Format)
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

	// Tables and logs are data. The MANIFEST says which tables count, and is no data alone.
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
func WriteFormat(dir string, format int) error {
	path := filepath.Join(dir, formatName)
	temp := path + ".tmp"

	// Under another name first: a torn FORMAT would lock us out of our own database.
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the database's format: %w", err)
	}

	_, err = fmt.Fprintf(f, "%s%d\n", formatPrefix, format)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = disk.Rename(temp, path)
	}
	if err == nil {
		err = disk.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write the database's format: %w", err)
	}
	return nil
}
