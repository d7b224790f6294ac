package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// MapWarning says what a power failure may take from a database that only msync makes
// durable.
const MapWarning = "a power failure may take the last writes of this database, " +
	"because msync does not empty the cache of a Mac's disk"

// RoomAt returns the room of the file system that a path is on.
func RoomAt(path string) (Room, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Room{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}

	block := int64(st.Bsize)
	return Room{Free: int64(st.Bavail) * block, Total: int64(st.Blocks) * block}, nil
}

func isReadOnly(folder *os.File) bool {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(folder.Fd()), &st)

	return err == nil && st.Flags&unix.MNT_RDONLY != 0
}
