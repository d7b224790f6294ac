package generation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"promptspool/spool/disk"
	"promptspool/spool/rawlog"
)

// readFirstBlocks reads the part of the value logs that Badger reads when it opens them.
func readFirstBlocks(dir string) error {
	paths, err := filesBySuffix(dir, ".vlog")
	for _, path := range paths {
		err = errors.Join(err, readAt(path, make([]byte, rawlog.HeaderBytes), 0))
	}

	// Badger reports a log that is too short.
	if errors.Is(err, io.EOF) {
		return nil
	}
	return unreadableOr(err)
}

// ReadValueLogs reads the value logs of a generation whole, and keeps nothing of them.
//
// So what the disk cannot read is found before Badger reads it through a mapping. The error
// is ErrUnreadable then.
func ReadValueLogs(dir string) error {
	paths, err := filesBySuffix(dir, ".vlog")
	if err != nil {
		return err
	}

	for _, path := range paths {
		// With reads, not through a mapping: a failed read is an error, a fault in a
		// mapping is a signal.
		bad, err := rawlog.Probe(path)
		if err != nil {
			return unreadableOr(err)
		}
		if len(bad) > 0 {
			return fmt.Errorf("%w: %s", ErrUnreadable, path)
		}
	}
	return nil
}

// unreadableOr wraps an I/O error in ErrUnreadable, and returns any other error as it is.
func unreadableOr(err error) error {
	if disk.IsUnreadable(err) {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}

// CheckManifest returns an error if the folder has no MANIFEST: Badger would
// delete all of its tables.
func CheckManifest(dir string) error {
	_, err := os.Stat(filepath.Join(dir, badger.ManifestFilename))
	return err
}

// filesBySuffix returns the paths of a folder's entries whose names end in suffix, in
// order.
func filesBySuffix(dir, suffix string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}

	// ReadDir sorts them. SEAL is compared byte by byte, and relies on that.
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

func readAt(path string, b []byte, offset int64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	_, err = disk.ReadAt(file, b, offset)
	return err
}

// unplacedName marks a folder that has the name of a generation, but no place among them
// yet. Only systems where a folder cannot be renamed while it is in use make such folders.
const unplacedName = "UNPLACED"

// IsUnplaced reports whether a folder is a generation that was not finished. Nothing was
// ever committed to it, so it is removed.
func IsUnplaced(dir string) bool {
	if !disk.Exists(filepath.Join(dir, unplacedName)) {
		return false
	}

	// A power failure may bring the mark back after it was removed. It only counts if
	// nothing was committed since.
	ev, err := Examine(dir)
	return err == nil && ev.Len() == 0 && len(ev.Unreadable) == 0
}

// Name returns the name of a generation's folder.
//
// Edition 0 was written by appends; a higher one was rebuilt from the raw files of the
// edition before it.
func Name(first uint64, edition int) string {
	if edition == 0 {
		return fmt.Sprintf("gen-%016x", first)
	}
	return fmt.Sprintf("gen-%016x.%d", first, edition)
}

// ParseName is the inverse of Name. It reports false for anything that Name does not
// return.
func ParseName(name string) (first uint64, edition int, ok bool) {
	base, suffix, rebuilt := strings.Cut(name, ".")
	if n, err := fmt.Sscanf(base, "gen-%016x", &first); n != 1 || err != nil || len(base) != len("gen-")+16 {
		return 0, 0, false
	}

	if rebuilt {
		if n, err := fmt.Sscanf(suffix, "%d", &edition); n != 1 || err != nil || edition < 1 {
			return 0, 0, false
		}
	}

	// Sscanf also accepts other spellings of the same numbers.
	return first, edition, Name(first, edition) == name
}

// Place is a generation among those of a folder.
type Place struct {
	Name     string   // of its newest edition
	First    uint64   // the first sequence that it may hold
	Follower uint64   // First of the next one; 0 for the newest
	Older    []string // names of editions that a crash in the middle of a rebuild left
}

// In lists the generations of a folder, in order.
func In(dir string) (places []Place, err error) {
	paths, err := filesBySuffix(dir, "")
	if err != nil {
		return nil, err
	}

	for _, path := range paths {
		name := filepath.Base(path)
		first, edition, ok := ParseName(name)
		if !ok || IsUnplaced(path) {
			continue
		}
		if n := len(places); n > 0 && places[n-1].First != first {
			places[n-1].Follower = first
		} else if n > 0 {
			// Names sort as text, so edition 10 comes before edition 9.
			newest := &places[n-1]
			older := name
			if _, known, _ := ParseName(newest.Name); known < edition {
				older, newest.Name = newest.Name, name
			}
			newest.Older = append(newest.Older, older)
			continue
		}
		places = append(places, Place{Name: name, First: first})
	}
	return places, nil
}
