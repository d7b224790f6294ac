package disk

import "golang.org/x/sys/unix"

// MapWarning says what a power failure may take from a database that only msync makes
// durable.
const MapWarning = "a power failure may take the last writes of this database, " +
	"because msync does not empty the cache of a Mac's disk"

const mountedReadOnly = unix.MNT_RDONLY
