package generation

import (
	"path/filepath"

	"promptspool/spool/disk"
)

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
