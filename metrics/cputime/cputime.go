// Package cputime measures the processor time of this process, for tests and benchmarks.
// Unlike a clock's, it is about the same on a busy machine.
package cputime

import (
	"fmt"
	"syscall"
	"time"
)

// Used returns the processor time that this process has used, user and system.
//
// It includes garbage collection and whatever other goroutines do.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("getrusage of this process: %v", err)) // only for wrong arguments
	}

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Of returns the processor time that this process uses while run runs.
func Of(run func()) time.Duration {
	before := Used()
	run()

	return Used() - before
}
