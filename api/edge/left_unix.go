//go:build unix && (!linux || portable)

package edge

import (
	"errors"

	"golang.org/x/sys/unix"
)

// hasHungUp reports whether the other end of a socket has closed it, or sends nothing more. It
// looks at the next byte, and leaves it: as long as something is unread, the end is not seen.
func hasHungUp(socket uintptr) bool {
	n, _, err := unix.Recvfrom(int(socket), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return false
	}

	return err != nil || n == 0
}
