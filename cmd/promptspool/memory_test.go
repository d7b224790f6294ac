package main

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemoryIsTendedUnlessToldOtherwise(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	limitAfter := func(environment string) (limit int64) {
		t.Setenv("GOMEMLIMIT", environment)
		debug.SetMemoryLimit(math.MaxInt64)
		synctest.Test(t, func(t *testing.T) {
			go tendMemory(t.Context())
			<-time.After(1500 * time.Millisecond)
			limit = debug.SetMemoryLimit(-1)
		})
		return limit
	}
	if got := limitAfter("64MiB"); got != math.MaxInt64 {
		t.Errorf("with GOMEMLIMIT the limit was changed to %d", got)
	}
	if got, most := limitAfter(""), cgroupMemory(); got < outsideHeap || got > most || got == math.MaxInt64 {
		t.Errorf("the limit is %d; the cgroup allows %d", got, most)
	}
}
