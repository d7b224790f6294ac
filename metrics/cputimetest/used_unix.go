//go:build unix

package cputimetest

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
