//go:build !linux

package disk

import "os"

// ByPages does nothing: only Linux is known to read and cache many pages as one.
func ByPages(*os.File) {}
