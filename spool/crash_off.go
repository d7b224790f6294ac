//go:build !crashpoints

package spool

// CrashPoint does nothing in this build.
func CrashPoint(string) {}

// unsafeNoSync is false: every commit is synced.
const unsafeNoSync = false
