//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/metrics/parts"
)

// image is a file system in a file, mounted through a loop device.
type image struct {
	t      *testing.T
	system fileSystem
	file   string
	mount  string
	loop   string // the device; "" while it is not mounted

	// direct: the file holds what a disk would hold, without anything that is only in the
	// page cache of the mounted side. A file on a tmpfs cannot do it.
	direct bool
}

// fileSystem is a way to make and mount an image. Everything is written when it is made:
// later the file holds nothing but what was asked for. Its journal is written as rarely
// as possible: so what was not synced is not there. A copy can be mounted beside it.
type fileSystem struct {
	name, from string // from: Debian's package of its mkfs
	mkfs       []string
	options    string
}

var ext4 = fileSystem{
	"ext4", "e2fsprogs",
	strings.Fields("mkfs.ext4 -q -m 0 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"), "commit=60",
}

// fileSystems are those whose power is cut in a soak, in turn. An xfs has 300 MiB at least.
var fileSystems = []fileSystem{
	ext4,
	{"xfs", "xfsprogs", strings.Fields("mkfs.xfs -q -K"), "nouuid"},
	{"btrfs", "btrfs-progs", strings.Fields("mkfs.btrfs -q -K -m single"), "commit=60"},
}

// newImage makes an image of some MiB and mounts it until the test ends.
func newImage(t *testing.T, mebibytes int) *image {
	t.Helper()
	return newImageIn(t, t.TempDir(), mebibytes, true)
}

func newImageIn(t *testing.T, dir string, mebibytes int, direct bool) *image {
	t.Helper()
	return newImageOf(t, ext4, dir, mebibytes, direct)
}

// newImageOf is newImageIn with a file system of choice.
func newImageOf(t *testing.T, system fileSystem, dir string, mebibytes int, direct bool) *image {
	t.Helper()
	parts.Need(t, "root", "losetup", "mount", "mkfs.ext4")
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts disk images, which only root may: " +
			"run it as root (or leave it out with go test -skip 'Power|Disk')")
	}
	for _, name := range []string{"losetup", system.mkfs[0], "mount", "umount"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is missing; apt-get install %s mount util-linux", name, system.from)
		}
	}
	i := imageOf(t, system, filepath.Join(dir, "disk"), direct)
	tool(t, "truncate", "--size", fmt.Sprint(mebibytes<<20), i.file)
	tool(t, system.mkfs[0], append(system.mkfs[1:len(system.mkfs):len(system.mkfs)], i.file)...)
	i.attach()
	return i
}

// imageOf returns an image that is not mounted.
func imageOf(t *testing.T, system fileSystem, file string, direct bool) *image {
	i := &image{t: t, system: system, file: file, mount: file + ".mount", direct: direct}
	t.Cleanup(i.detach)
	return i
}

// attach mounts the image.
func (i *image) attach() {
	i.t.Helper()
	if err := os.MkdirAll(i.mount, 0o700); err != nil {
		i.t.Fatal(err)
	}
	args := []string{"--find", "--show", i.file}
	if i.direct {
		args = append([]string{"--direct-io=on"}, args...)
	}
	i.loop = strings.TrimSpace(tool(i.t, "losetup", args...))
	i.writeByPages()
	tool(i.t, "mount", "-t", i.system.name, "-o", i.system.options, i.loop, i.mount)
}

// writeByPages keeps the loop device honest: it reports success for a write that only
// succeeded in part, because the file below could not grow (Linux 6.18, lo_complete_rq in
// drivers/block/loop.c). A page is written wholly or not.
func (i *image) writeByPages() {
	limit := filepath.Join("/sys/block", filepath.Base(i.loop), "queue/max_sectors_kb")
	if err := os.WriteFile(limit, []byte("4"), 0); err != nil {
		i.t.Fatal(err)
	}
}

// detach unmounts the image, whether it was mounted or not.
func (i *image) detach() {
	if i.loop == "" {
		return
	}

	_ = syscall.Unmount(i.mount, 0)
	if out, err := exec.Command("losetup", "--detach", i.loop).CombinedOutput(); err != nil {
		i.t.Errorf("the loop device %s stays: %v %s", i.loop, err, out)
	}

	// A process with mounts of its own (package_test.go) may have taken this one along: the
	// device, and with it the file, is let go when that ends.
	for until := time.Now().Add(time.Minute); i.isAttached() && !i.t.Failed(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			i.t.Errorf("the loop device %s is still in use", i.loop)
		}
	}
	i.loop = ""
}

// isAttached reports whether the loop device still has the image's file.
func (i *image) isAttached() bool {
	file, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(i.loop), "loop/backing_file"))
	return err == nil && strings.TrimSpace(string(file)) == i.file
}

// afterPowerCut copies the image as it is at this moment, whatever still waits to be
// written, and mounts the copy. The process that writes to it must be stopped;
// afterPowerCut waits for what the kernel still writes for it.
func (i *image) afterPowerCut() *image {
	i.t.Helper()
	var copies [2]string
	for n := range 100 {
		copies[n%2] = fmt.Sprintf("%s-copy-%d", i.file, n)
		tool(i.t, "cp", "--sparse=always", i.file, copies[n%2])
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
			c.attach()
			return c
		}
	}
	i.t.Fatal("no two copies of the image are equal; something still writes to it")
	return nil
}

// tool runs a program and returns what it printed.
func tool(t *testing.T, name string, args ...string) string {
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

func filesIn(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
