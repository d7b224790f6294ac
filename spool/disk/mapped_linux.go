//go:build portable

package disk

import "golang.org/x/sys/unix"

// Sync returns when what was written to the mapping is on the disk.
func (m Mapped) Sync() error { return unix.Fdatasync(int(m.file.Fd())) }
