// Package cputimetest measures the processor time of this process, for tests and benchmarks.
// Unlike a clock's, it is about the same on a busy machine.
package cputimetest

import "time"

// Of returns the processor time that this process uses while run runs.
func Of(run func()) time.Duration {
	before := Used()
	run()

	return Used() - before
}
