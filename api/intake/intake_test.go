package intake

import "testing"

func TestBodiesLeaveRoomForThoseOfOthers(t *testing.T) {
	const mib = 1 << 20
	pool := newBodyPool(128*mib, 32*mib)
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
		t.Error("another key has no room for one, or for more than there is")
	}

	small := 0
	for take(Anonymous, smallBytes) {
		small++
	}
	if small < 16*mib/smallBytes {
		t.Errorf("beside them there is room for %d small bodies", small)
	}
}
