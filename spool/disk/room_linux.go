package disk

import "golang.org/x/sys/unix"

// MapWarning says what a power failure may take from a database that only msync makes
// durable. It is empty where msync suffices.
const MapWarning = ""

const mountedReadOnly = unix.ST_RDONLY
