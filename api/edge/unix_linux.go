//go:build linux && !portable

package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// ListenUnix listens on a socket at a path. Its file has this mode, less the umask, from its first moment.
func ListenUnix(path string, mode os.FileMode) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		// Linux takes the mode of the new file from the socket's own. To change it once the file
		// exists would leave others a moment to connect.
		failed := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), uint32(mode)) })
		return errors.Join(failed, err)
	}}

	return config.Listen(context.Background(), "unix", path)
}

// ShortPath returns a short path of a folder, which holds until done is called.
func ShortPath(dir string) (path string, done func(), err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}

	return fmt.Sprintf("/proc/self/fd/%d", folder.Fd()), func() { _ = folder.Close() }, nil
}
