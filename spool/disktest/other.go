//go:build !linux

package disktest

import "testing"

// BlockBytes is the size of a block.
const BlockBytes = 4096

// Disk is a disk with bad blocks, which only Linux can mount.
type Disk struct {
	Dir   string // where it is mounted
	Below string // the folder that it shows, where all blocks are good
}

// Main does nothing on this system.
func Main() {}

// Mount fails the test: only Linux mounts a disk through FUSE here.
func Mount(t testing.TB) *Disk {
	t.Helper()
	t.Fatal("a disk with bad blocks is mounted through FUSE, on Linux only")

	return nil
}

// Break does nothing, because there is no Disk.
func (d *Disk) Break(string, int64) {}

// BreakSync does nothing, because there is no Disk.
func (d *Disk) BreakSync(string) {}

// Heal does nothing, because there is no Disk.
func (d *Disk) Heal() {}
