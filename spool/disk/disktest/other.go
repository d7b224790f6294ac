//go:build !linux

package disktest

import "testing"

// BlockBytes is the size of a block.
const BlockBytes = 4096

// Disk is a folder whose files can fail, which only Linux can mount.
type Disk struct {
	Dir   string // where it is mounted
	Below string // the folder that it shows, where nothing fails
}

// Mount fails the test: only Linux mounts a disk through FUSE here.
func Mount(t testing.TB) *Disk {
	t.Helper()
	t.Fatal("a disk that fails is mounted through FUSE, on Linux only")

	return nil
}

// BreakSync does nothing, because there is no Disk.
func (d *Disk) BreakSync(string) {}

// Volume is a file system with bad blocks, which only Linux can mount.
type Volume struct {
	Dir string // where it is mounted
}

// FileSystems are the names of those that a Volume can have.
var FileSystems = []string{"ext4", "xfs"}

// MountVolume fails the test: only Linux mounts a Volume here.
func MountVolume(t testing.TB, _ string) *Volume {
	t.Helper()
	t.Fatal("a volume with bad blocks is mounted on Linux only")

	return nil
}

// Break does nothing, because there is no Volume.
func (v *Volume) Break(string, int64) {}

// Forget does nothing, because there is no Volume.
func (v *Volume) Forget(string) {}
