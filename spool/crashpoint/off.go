//go:build !crashpoints

package crashpoint

// Reach does nothing in this build.
func Reach(string) {}

// NoSync is false: every commit is synced.
const NoSync = false
