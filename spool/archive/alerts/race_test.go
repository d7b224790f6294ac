//go:build race

// Threads meet in this package: make test runs its tests with the race detector.
package alerts
