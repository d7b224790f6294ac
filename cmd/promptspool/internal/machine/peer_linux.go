package machine

import "golang.org/x/sys/unix"

func peerAt(socket int) (uint32, error) {
	cred, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
