//go:build linux

package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/metrics/partstest"
)

// MountTmpfs mounts 64 MiB of memory on a folder, which it makes, until the test ends.
func MountTmpfs(t *testing.T, dir string) string {
	t.Helper()
	partstest.Need(t, "root")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v; this test needs root", err)
	}
	t.Cleanup(func() {
		err := syscall.Unmount(dir, 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the test may have removed it
			t.Errorf("the tmpfs %s stays mounted: %v", dir, err)
		}
	})
	return dir
}

// Image is a file system in a file, mounted through a loop device.
type Image struct {
	t      *testing.T
	system FileSystem
	file   string
	Mount  string
	loop   string // the device; "" while it is not mounted

	// direct: the file holds what a disk would hold, without anything that is only in the
	// page cache of the mounted side. A file on a tmpfs cannot do it.
	direct bool
}

// FileSystem is a way to make and mount an image. Everything is written when it is made:
// later the file holds nothing but what was asked for. Its journal is written as rarely
// as possible: so what was not synced is not there. A copy can be mounted beside it.
type FileSystem struct {
	Name    string
	mkfs    []string
	options string
}

// Ext4 is the file system of images unless a test chooses another.
var Ext4 = FileSystem{
	"ext4",
	strings.Fields("mkfs.ext4 -q -m 0 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"), "commit=60",
}

// FileSystems are those whose power is cut in a soak, in turn. An xfs has 300 MiB at least.
var FileSystems = []FileSystem{
	Ext4,
	{"xfs", strings.Fields("mkfs.xfs -q -K"), "nouuid"},
	{"btrfs", strings.Fields("mkfs.btrfs -q -K -m single"), "commit=60"},
}

// NewImage makes an image in dir of some MiB and mounts it until the test ends. It holds what a disk
// would if direct is set.
func NewImage(t *testing.T, system FileSystem, dir string, mebibytes int, direct bool) *Image {
	t.Helper()
	partstest.Need(t, "root", "losetup", "mount", "mkfs.ext4")
	i := imageOf(t, system, filepath.Join(dir, "disk"), direct)
	Tool(t, "truncate", "--size", fmt.Sprint(mebibytes<<20), i.file)
	Tool(t, system.mkfs[0], append(system.mkfs[1:len(system.mkfs):len(system.mkfs)], i.file)...)
	i.Attach()
	return i
}

// imageOf returns an image that is not mounted.
func imageOf(t *testing.T, system FileSystem, file string, direct bool) *Image {
	i := &Image{t: t, system: system, file: file, Mount: file + ".mount", direct: direct}
	t.Cleanup(i.Detach)
	return i
}

// Attach mounts the image.
func (i *Image) Attach() {
	i.t.Helper()
	if err := os.MkdirAll(i.Mount, 0o700); err != nil {
		i.t.Fatal(err)
	}
	args := []string{"--find", "--show", i.file}
	if i.direct {
		args = append([]string{"--direct-io=on"}, args...)
	}
	i.loop = strings.TrimSpace(Tool(i.t, "losetup", args...))
	i.writeByPages()
	Tool(i.t, "mount", "-t", i.system.Name, "-o", i.system.options, i.loop, i.Mount)
}

// writeByPages keeps the loop device honest: it reports success for a write that only
// succeeded in part, because the file below could not grow (Linux 6.18, lo_complete_rq in
// drivers/block/loop.c). A page is written wholly or not.
func (i *Image) writeByPages() {
	limit := filepath.Join("/sys/block", filepath.Base(i.loop), "queue/max_sectors_kb")
	if err := os.WriteFile(limit, []byte("4"), 0); err != nil {
		i.t.Fatal(err)
	}
}

// Detach unmounts the image, whether it was mounted or not.
func (i *Image) Detach() {
	if i.loop == "" {
		return
	}

	_ = syscall.Unmount(i.Mount, 0)
	if out, err := exec.Command("losetup", "--detach", i.loop).CombinedOutput(); err != nil {
		i.t.Errorf("the loop device %s stays: %v %s", i.loop, err, out)
	}

	// A process with mounts of its own (install/package_test.go) may have taken this one along: the
	// device, and with it the file, is let go when that ends.
	for until := time.Now().Add(time.Minute); i.isAttached() && !i.t.Failed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			i.t.Errorf("the loop device %s is still in use", i.loop)
		}
	}
	i.loop = ""
}

// isAttached reports whether the loop device still has the image's file.
func (i *Image) isAttached() bool {
	file, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(i.loop), "loop/backing_file"))
	return err == nil && strings.TrimSpace(string(file)) == i.file
}

// AfterPowerCut copies the image as it is at this moment, whatever still waits to be
// written, and mounts the copy. The process that writes to it must be stopped;
// AfterPowerCut waits for what the kernel still writes for it.
func (i *Image) AfterPowerCut() *Image {
	i.t.Helper()
	var copies [2]string
	for n := range 100 {
		copies[n%2] = fmt.Sprintf("%s-copy-%d", i.file, n)
		Tool(i.t, "cp", "--sparse=always", i.file, copies[n%2])
		last := copies[(n+1)%2]
		if last == "" {
			continue
		}

		same := exec.Command("cmp", "--silent", copies[0], copies[1]).Run() == nil
		if err := os.Remove(last); err != nil {
			i.t.Fatal(err)
		}
		if same {
			c := imageOf(i.t, i.system, copies[n%2], i.direct)
			c.Attach()
			return c
		}
	}
	i.t.Fatal("no two copies of the image are equal; something still writes to it")
	return nil
}

// Tool runs a program and returns what it printed.
func Tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errs.String())
	}
	return string(out)
}
