//go:build linux && !portable

package disk

import "os"

// Rename is os.Rename.
func Rename(from, to string) error { return os.Rename(from, to) }

// Remove is os.Remove.
func Remove(path string) error { return os.Remove(path) }

// RemoveAll is os.RemoveAll.
func RemoveAll(path string) error { return os.RemoveAll(path) }

// IsInUse reports whether a file could not be renamed or removed because it is in use.
// Linux renames and removes it even then.
func IsInUse(error) bool { return false }
