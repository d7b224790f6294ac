package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// RoomAt returns the room of the file system that a path is on.
func RoomAt(path string) (Room, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Room{}, err
	}

	var free, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, &all); err != nil {
		return Room{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: path, Err: err}
	}

	return Room{Free: int64(free), Total: int64(total)}, nil
}

// isReadOnly reports false: a sync on a volume that became read-only fails here.
func isReadOnly(*os.File) bool { return false }
