package edge

import "golang.org/x/sys/unix"

// hasHungUp reports whether the other end of a socket has closed it, or sends nothing more. A
// poll without a timeout asks, and does not wait.
func hasHungUp(socket uintptr) bool {
	ends := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(ends, 0)

	return err == nil && n > 0 && ends[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}
