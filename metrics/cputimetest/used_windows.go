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
	self, err := syscall.GetCurrentProcess()
	var created, exited, kernel, user syscall.Filetime
	if err == nil {
		err = syscall.GetProcessTimes(self, &created, &exited, &kernel, &user)
	}
	if err != nil {
		panic(fmt.Sprintf("the processor time of this process: %v", err)) // only for wrong arguments
	}

	// Filetime.Nanoseconds counts from 1970, which is wrong for a duration.
	ticks := func(t syscall.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

	return time.Duration(ticks(kernel)+ticks(user)) * 100
}
