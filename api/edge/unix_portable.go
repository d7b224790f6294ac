//go:build unix && (!linux || portable)

package edge

import (
	"errors"
	"net"
	"os"
	"path/filepath"
)

// ListenUnix listens on a socket at a path. Its file has this mode from the moment at which it is at the path.
func ListenUnix(path string, mode os.FileMode) (net.Listener, error) {
	// The socket is made where nobody else may look, and gets its mode before it gets its place.
	hidden, err := os.MkdirTemp(filepath.Dir(path), "s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(hidden)

	made := filepath.Join(hidden, "s")
	ln, err := net.Listen("unix", made)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(made, mode), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, ln.Close())
	}

	return ln, nil
}

// ShortPath returns a short path of a folder, which holds until done is called.
func ShortPath(dir string) (path string, done func(), err error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	temporary, err := os.MkdirTemp("", "ps")
	if err != nil {
		return "", nil, err
	}

	path = filepath.Join(temporary, "d")
	done = func() { _ = os.RemoveAll(temporary) }
	if err := os.Symlink(whole, path); err != nil {
		done()
		return "", nil, err
	}

	return path, done, nil
}
