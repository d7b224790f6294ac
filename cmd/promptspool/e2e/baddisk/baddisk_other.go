//go:build !linux

package baddisk

import "errors"

// Serve fails: only Linux mounts a disk through FUSE.
func Serve(string) error {
	return errors.New("a disk that fails is mounted through FUSE, on Linux only")
}
