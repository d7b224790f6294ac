package admission

import (
	"bytes"
	"runtime"
	"testing"
)

func TestBodiesLeaveRoomForThoseOfOthers(t *testing.T) {
	const mib = 1 << 20
	pool, _ := newBodyPool(128*mib, 32*mib)
	take := func(owner string, size int64) bool {
		c := pool.Claim(owner)
		return c.Resize(size) == nil
	}
	takeLarge := func(owner string, n int) (taken int) {
		for range n {
			if take(owner, 30*mib) {
				taken++
			}
		}
		return taken
	}

	if got := takeLarge(Anonymous, 8); got != 1 {
		t.Errorf("anonymous callers hold %d large bodies, want 1", got)
	}
	if got := takeLarge("greedy", 8); got != 2 {
		t.Errorf("one key holds %d large bodies, want 2", got)
	}
	if !take("modest", 20*mib) || take("modest", 20*mib) {
		t.Error("another key has no space for one, or for more than there is")
	}

	small := 0
	for take(Anonymous, smallBodyBytes) {
		small++
	}
	if small < 16*mib/smallBodyBytes {
		t.Errorf("beside them there is space for %d small bodies", small)
	}
}

// A collection costs a server, which has many more objects and more space, too much for each body.
func TestOnlyASidecarCollectsWhileABodyGrows(t *testing.T) {
	const mib = 1 << 20
	collections := func(believed bool) uint32 {
		pool, _ := newBodyPool(128*mib, 32*mib)
		b := &Body{claim: pool.Claim("key"), refuse: func(err error) error { return err }, believed: believed}
		defer b.claim.Release()

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := b.fill(bytes.NewReader(make([]byte, 20*mib)), 32*mib); err != nil {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)

		return after.NumForcedGC - before.NumForcedGC
	}

	if server, sidecar := collections(false), collections(true); server != 0 || sidecar == 0 {
		t.Errorf("%d forced collections on a server, %d in a sidecar", server, sidecar)
	}
}
