//go:build unix

package machine

import (
	"errors"
	"net"
)

// knowsPeers: the kernel tells which user is at the other end of a unix socket.
const knowsPeers = true

// peerOf returns the user at the other end of a unix socket.
func peerOf(conn net.Conn) (uid uint32, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(fd uintptr) { uid, err = peerAt(int(fd)) })
	return uid, errors.Join(failed, err)
}
