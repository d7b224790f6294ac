package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// MapWarning says what a power failure may take from a database that only msync makes
// durable. It is empty where msync suffices.
const MapWarning = ""

// RoomAt returns the room of the file system that a path is on.
func RoomAt(path string) (Room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Room{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}

	return Room{Free: int64(st.Bavail) * st.Bsize, Total: int64(st.Blocks) * st.Bsize}, nil
}

func isReadOnly(folder *os.File) bool {
	// Of the open folder: something else may be mounted over its path by now.
	var st unix.Statfs_t
	err := unix.Fstatfs(int(folder.Fd()), &st)

	return err == nil && st.Flags&unix.ST_RDONLY != 0
}
