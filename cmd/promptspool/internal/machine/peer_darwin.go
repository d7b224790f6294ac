package machine

import "golang.org/x/sys/unix"

func peerAt(socket int) (uint32, error) {
	cred, err := unix.GetsockoptXucred(socket, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
