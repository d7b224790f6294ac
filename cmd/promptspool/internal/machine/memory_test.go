package machine

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"promptspool/api/wire"
)

func TestMemoryIsTendedUnlessToldOtherwise(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	limitAfter := func(environment string) (limit int64) {
		t.Setenv("GOMEMLIMIT", environment)
		debug.SetMemoryLimit(math.MaxInt64)
		synctest.Test(t, func(t *testing.T) {
			go TendMemory(t.Context())
			<-time.After(1500 * time.Millisecond)
			limit = debug.SetMemoryLimit(-1)
		})
		return limit
	}
	if got := limitAfter("64MiB"); got != math.MaxInt64 {
		t.Errorf("with GOMEMLIMIT the limit was changed to %d", got)
	}
	if got, most := limitAfter(""), CgroupMemory(); got < OutsideHeap || got > most || got == math.MaxInt64 {
		t.Errorf("the limit is %d; the cgroup allows %d", got, most)
	}
}

func TestBodiesAreBoundedByTheMemoryOfTheCgroup(t *testing.T) {
	for memory, want := range map[int64][2]int64{
		noMemoryLimit: {sidecarBufferBytes, wire.BodyBytesMax},
		96 << 20:      {sidecarBufferBytes, wire.BodyBytesMax},
		64 << 20:      {(40 << 20) / 9 * 5, (40 << 20) / 9 * 5 / 5 * 4},
		16 << 20:      {sidecarBufferMin, (8 << 20) / 5 * 4},
	} {
		if buffer, one := BodyBounds(memory); buffer != want[0] || one != want[1] {
			t.Errorf("with %d bytes of memory: %d and %d, want %d", memory, buffer, one, want)
		}
	}
}
