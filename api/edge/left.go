package edge

import (
	"net"
	"syscall"
)

// HasLeft reports whether the other end of a connection has closed it, or sends nothing more. It
// reads nothing, so any goroutine may ask while others read and write. For a connection that is
// not a socket it reports false.
func HasLeft(conn net.Conn) bool {
	// The socket may be within a counted connection, and that in one with TLS.
	for {
		switch c := conn.(type) {
		case syscall.Conn:
			return isClosed(c)
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return false
		}
	}
}

func isClosed(c syscall.Conn) (closed bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}

	// The only error is that we have closed the connection ourselves.
	_ = raw.Control(func(socket uintptr) { closed = hasHungUp(socket) })

	return closed
}
