package edge

import (
	"fmt"
	"net"
	"os"
)

// ListenUnix listens on a socket at a path. Windows keeps no mode: who may connect is who may
// open files in the folder.
func ListenUnix(path string, _ os.FileMode) (net.Listener, error) { return net.Listen("unix", path) }

// ShortPath returns an error: Windows has no short path for every folder.
func ShortPath(dir string) (path string, done func(), err error) {
	return "", nil, fmt.Errorf("the path %s is too long for a socket in it; choose a folder with a shorter one", dir)
}
