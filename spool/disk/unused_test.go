//go:build linux && portable

package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhatIsOpenOrMappedIsNeitherRenamedNorRemoved(t *testing.T) {
	defer func(before time.Duration) { patience = before }(patience)
	patience = 10 * time.Millisecond

	dir := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(dir, "file")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, make([]byte, 4096), 0o600)); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}

	// The mapping outlives the file that it was made from.
	for _, end := range []func() error{file.Close, func() error { return unix.Munmap(data) }} {
		for what, err := range map[string]error{
			"rename it":           Rename(path, path+".new"),
			"rename its folder":   Rename(dir, dir+".new"),
			"remove it":           Remove(path),
			"remove its folder":   RemoveAll(dir),
			"rename something to": Rename(t.TempDir(), path),
		} {
			if !IsInUse(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}

	if err := errors.Join(Rename(path, path+".new"), RemoveAll(dir)); err != nil {
		t.Errorf("once nothing uses it: %v", err)
	}
}
