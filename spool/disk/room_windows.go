package disk

import (
	"os"

	"golang.org/x/sys/windows"
)

// MapWarning says what a power failure may take from a database that only msync makes
// durable.
const MapWarning = "a power failure, or a crash of Windows, may take the last writes of this database, " +
	"because Badger does not sync its files on Windows"

// RoomAt returns the room of the file system that a path is on.
func RoomAt(path string) (Room, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Room{}, err
	}

	// The bytes free for this user, whose quota may be less than the free space of the
	// disk.
	var free, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, &total, &all); err != nil {
		return Room{}, &os.PathError{Op: "GetDiskFreeSpaceEx", Path: path, Err: err}
	}

	return Room{Free: int64(free), Total: int64(total)}, nil
}

// isReadOnly reports false: a sync on a volume that became read-only fails here.
func isReadOnly(*os.File) bool { return false }
