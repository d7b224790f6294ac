package disktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"promptspool/metrics/partstest"
)

// Volume is a mounted file system with bad blocks.
type Volume struct {
	Dir    string // where it is mounted
	device string // the file below of a Disk that it is in
	t      testing.TB
}

// mkfs makes a file system in a file, without a byte that need not be written, by the
// file system's name.
var mkfs = map[string][]string{
	"ext4": strings.Fields("mkfs.ext4 -q -F -b 4096 -m 0 -E nodiscard,lazy_itable_init=0"),
	"xfs":  strings.Fields("mkfs.xfs -q -f -K"),
}

// FileSystems are the names of those that a Volume can have.
var FileSystems = []string{"ext4", "xfs"}

// MountVolume mounts an empty file system of this name until the test ends.
func MountVolume(t testing.TB, fileSystem string) *Volume {
	t.Helper()
	command := mkfs[fileSystem]
	partstest.Need(t, "losetup", command[0])
	disk := Mount(t)
	v := &Volume{
		Dir:    filepath.Join(filepath.Dir(disk.Dir), VolumeName),
		device: filepath.Join(disk.Below, "device"),
		t:      t,
	}

	const bytes = 300 << 20 // the least that mkfs.xfs takes
	if err := errors.Join(os.Mkdir(v.Dir, 0o700), os.WriteFile(v.device, nil, 0o600),
		os.Truncate(v.device, bytes)); err != nil {
		t.Fatal(err)
	}
	v.run(append(command[:len(command):len(command)], v.device)...)

	// Direct, so that no other cache than the volume's own is read.
	loop := v.run("losetup", "--find", "--show", "--direct-io=on", filepath.Join(disk.Dir, "device"))
	// As much as the disks of some clouds have: the more is read ahead, the more pages the
	// kernel takes as one.
	ahead := filepath.Join("/sys/block", filepath.Base(loop), "queue/read_ahead_kb")
	err := errors.Join(os.WriteFile(ahead, []byte("8192"), 0), unix.Mount(loop, v.Dir, fileSystem, 0, ""))
	v.run("losetup", "--detach", loop) // once nothing uses it any more
	if err != nil {
		t.Fatalf("cannot mount %s: %v; this test needs root", fileSystem, err)
	}

	t.Cleanup(func() {
		// A process that met a fault may still have files open, until this process ends.
		// The kernel then lets go of the volume, and needs the disk for that.
		err := syscall.Unmount(v.Dir, 0)
		if errors.Is(err, syscall.EBUSY) {
			disk.inUse = true
			err = syscall.Unmount(v.Dir, syscall.MNT_DETACH)
		}
		if err != nil {
			t.Errorf("the volume stays mounted: %v", err)
		}
	})
	return v
}

// run runs a program and returns the line that it printed.
func (v *Volume) run(command ...string) string {
	v.t.Helper()
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		v.t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Break makes the block of a file with this offset unreadable, from now on. A part of the
// file that is mapped somewhere can be read there as before.
func (v *Volume) Break(path string, offset int64) {
	v.t.Helper()
	file, err := os.Open(path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer file.Close()
	if err := file.Sync(); err != nil { // it gets its blocks
		v.t.Fatal(err)
	}

	at, err := placeOf(file, offset/BlockBytes*BlockBytes)
	if err != nil {
		v.t.Fatalf("%s at %d: %v", path, offset, err)
	}

	if err := unix.Lsetxattr(v.device, BadBlockAt(at), nil, 0); err != nil {
		v.t.Fatalf("mark %s: %v; the file system of %s must have extended attributes", v.device, err, os.TempDir())
	}

	// Earlier reads are in the page cache. Neither they nor what this reads may be left
	// there: the next reader must meet the block itself.
	for until := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		v.Forget(path)
		_, err := file.ReadAt(make([]byte, 1), offset)
		v.Forget(path)
		if errors.Is(err, syscall.EIO) {
			return
		}
		if time.Now().After(until) {
			v.t.Fatalf("the block at %d of %s can be read (%v), so the test proves nothing", offset, path, err)
		}
	}
}

// Forget drops a file from the page cache, as far as nothing maps it.
func (v *Volume) Forget(path string) {
	v.t.Helper()
	file, err := os.Open(path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		v.t.Fatal(err)
	}
}

// placeOf returns where the device has the block at an offset of a file.
func placeOf(file *os.File, offset int64) (int64, error) {
	// struct fiemap and one struct fiemap_extent, of linux/fiemap.h.
	request := struct {
		start, length                  uint64
		flags, mapped, count, reserved uint32
		logical, physical, extent      uint64
		reserved64                     [2]uint64
		extentFlags, r1, r2, r3        uint32
	}{start: uint64(offset), length: BlockBytes, count: 1}
	const getExtents = 0xc020660b // FS_IOC_FIEMAP
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), getExtents, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return 0, errno
	}

	// Data that shares its blocks, or is not written yet, cannot be broken.
	const odd = ^uint32(1) // every flag but that of the last extent
	if request.mapped != 1 || request.extentFlags&odd != 0 {
		return 0, fmt.Errorf("there is no block (%d extents, flags %#x)", request.mapped, request.extentFlags)
	}
	return int64(request.physical) + offset - int64(request.logical), nil
}
