package rawlog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Present returns an error if a sync in an open folder may not have reached the folder at
// path.
//
// Either the file system was made read-only, where ext4 syncs successfully without
// writing, or the folder was removed, moved or mounted over. Call it after the sync.
func Present(folder *os.File, path string) error {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &system); err == nil && system.Flags&unix.ST_RDONLY != 0 {
		return fmt.Errorf("%s is on a file system that has been made read-only: %w", path, unix.EROFS)
	}

	// Compare the open folder with what is found under its path now.
	var opened, found unix.Stat_t
	if err := unix.Fstat(int(folder.Fd()), &opened); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	err := unix.Stat(path, &found)
	if errors.Is(err, unix.ENOENT) || err == nil && (opened.Dev != found.Dev || opened.Ino != found.Ino) {
		return fmt.Errorf("the folder %s that was opened is not there any more: "+
			"it was removed, moved or mounted over", path)
	}
	return nil
}
