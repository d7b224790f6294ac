package disk

import (
	"errors"
	"fmt"
	"os"
)

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
