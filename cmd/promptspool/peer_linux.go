package main

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// knowsPeers: the kernel tells which user is at the other end of a unix socket.
const knowsPeers = true

// peerOf returns the user at the other end of a unix socket.
func peerOf(conn net.Conn) (uint32, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}

	var cred *unix.Ucred
	failed := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(failed, err); err != nil {
		return 0, err
	}

	return cred.Uid, nil
}
