// Package disktest is a disk that breaks, for tests.
//
// A Disk is a folder, shown through FUSE by a process of cmd/promptspool/e2e/tools, in which the sync of a
// bad file fails. A Volume is a real file system whose device is a file of a Disk: a read
// of a bad block gets EIO and a mapping of it SIGBUS, and how many of its neighbours the
// kernel fails with it is up to the kernel and that file system.
package disktest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"promptspool/metrics/partstest"
)

// BlockBytes is the size of a block.
const BlockBytes = 4096

// The names in a disk's folder.
const (
	DiskName   = "disk"   // where it is mounted
	BelowName  = "below"  // the folder that it shows
	VolumeName = "volume" // where the volume in it is mounted, if there is one
)

// Disk is a mounted folder whose files can fail.
type Disk struct {
	Dir   string // where it is mounted
	Below string // the folder that it shows, where nothing fails
	t     testing.TB
	inUse bool // longer than the test
}

// Mount mounts an empty disk until the test ends.
func Mount(t testing.TB) *Disk {
	t.Helper()
	partstest.Need(t, "root")
	folder := t.TempDir()
	d := &Disk{Dir: filepath.Join(folder, DiskName), Below: filepath.Join(folder, BelowName), t: t}
	if err := errors.Join(os.Mkdir(d.Dir, 0o700), os.Mkdir(d.Below, 0o700)); err != nil {
		t.Fatal(err)
	}

	// A separate process serves the disk: a fault in a mapping of it must not stop the
	// process that answers.
	tools, err := partstest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(tools, "baddisk", folder)
	errs, err := os.Create(filepath.Join(folder, "errors"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	server.Stderr = errs
	stdin, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}

	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		_ = server.Wait()
		text, _ := os.ReadFile(errs.Name())
		t.Fatalf("cannot mount a disk through FUSE: %s; this test needs root and /dev/fuse", text)
	}
	t.Cleanup(func() {
		// A process that met a fault may still have files open.
		if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("the disk stays mounted: %v", err)
		}
		_ = stdin.Close()
		if !d.inUse {
			_ = server.Process.Kill()
			_ = server.Wait()
		}
	})

	return d
}

// BadSync is the attribute of a file below that cannot be synced.
const BadSync = "user.promptspool.badsync"

// BreakSync makes each sync of a file fail, from now on.
func (d *Disk) BreakSync(path string) {
	d.t.Helper()
	name, err := filepath.Rel(d.Dir, path)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Lsetxattr(filepath.Join(d.Below, name), BadSync, []byte("1"), 0); err != nil {
		d.t.Fatalf("mark %s: %v", name, err)
	}
}

// BadBlock begins the name of an attribute of a file below, one for each of its bad blocks. The
// offset follows. A folder in memory has such attributes on every kernel, other
// than those of users.
const BadBlock = "trusted.promptspool.bad."

// BadBlockAt returns the name of the attribute for a bad block at an offset.
func BadBlockAt(offset int64) string { return BadBlock + strconv.FormatInt(offset, 10) }
