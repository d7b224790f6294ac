//go:build !crashpoints

package spool

// CrashPoint does nothing in this build.
func CrashPoint(string) {}

// unsafeNoSync: every commit is synced.
const unsafeNoSync = false
