//go:build portable

package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errInUse is what checkUnused returns, as Windows would.
var errInUse = errors.New("it is open or mapped, and Windows would refuse")

// IsInUse reports whether a file could not be renamed or removed because it is in use.
func IsInUse(err error) bool { return errors.Is(err, errInUse) }

// checkUnused returns an error if this process has something open or mapped at a path, or
// in the folder there. Linux would not mind.
func checkUnused(paths []string) error {
	used, err := filesInUse()
	if err != nil {
		return err
	}

	for _, path := range paths {
		path, err := realPath(path)
		if err != nil {
			return err
		}
		for _, name := range used {
			if name == path || strings.HasPrefix(name, path+"/") {
				return fmt.Errorf("%s: %s: %w", path, name, errInUse)
			}
		}
	}
	return nil
}

// realPath returns a path as the kernel names it. The file there may itself be a link.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}

	// The folder's links are followed, and the last name's are not.
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return path, nil
	}
	return filepath.Join(dir, filepath.Base(path)), err
}

// filesInUse returns what this process has open or mapped.
func filesInUse() (names []string, err error) {
	const folder = "/proc/self/fd/"
	open, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, fd := range open {
		if name, err := os.Readlink(folder + fd.Name()); err == nil { // closed meanwhile
			names = append(names, name)
		}
	}

	// A mapping keeps its file in use also after the file was closed.
	maps, err := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if at := strings.IndexByte(line, '/'); at > 0 {
			names = append(names, strings.TrimSuffix(line[at:], "\n"))
		}
	}
	return names, err
}
