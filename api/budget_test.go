package api

import (
	"testing"

	"pgregory.net/rapid"
)

func TestABudgetLeavesRoomForOthers(t *testing.T) {
	const mib = 1 << 20
	b := newBudget(128*mib, 32*mib)
	take := func(owner string, n int) (taken int) {
		for range n {
			if b.take(owner, 0, 30*mib) {
				taken++
			}
		}
		return taken
	}

	if got := take(stranger, 8); got != 1 {
		t.Errorf("strangers hold %d large bodies, want 1", got)
	}
	if got := take("greedy", 8); got != 2 {
		t.Errorf("one key holds %d large bodies, want 2", got)
	}
	if !b.take("modest", 0, 20*mib) || b.take("modest", 0, 20*mib) {
		t.Error("another key has no room for one, or for more than there is")
	}
	small := 0
	for b.take(stranger, 0, smallBytes) {
		small++
	}
	if small < 16*mib/smallBytes {
		t.Errorf("beside them there is room for %d small bodies", small)
	}
}

func TestABudgetGetsBackWhatItGave(t *testing.T) {
	type held struct {
		owner string
		bytes int64
	}

	rapid.Check(t, func(t *rapid.T) {
		const whole = 10 * smallBytes
		b := newBudget(whole, 4*smallBytes)
		var all []held

		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			owner := rapid.SampledFrom([]string{stranger, "a", "b"}).Draw(t, "owner")
			switch at := rapid.IntRange(0, len(all)).Draw(t, "body"); {
			case at == len(all):
				if size := rapid.Int64Range(1, whole).Draw(t, "size"); b.take(owner, 0, size) {
					all = append(all, held{owner, size})
				}
			case rapid.Bool().Draw(t, "grows"):
				size := all[at].bytes + rapid.Int64Range(0, whole).Draw(t, "more")
				if b.take(all[at].owner, all[at].bytes, size) {
					all[at].bytes = size
				}
			case all[at].owner == stranger:
				b.pass(owner, all[at].bytes)
				all[at].owner = owner
			default:
				b.give(all[at].owner, all[at].bytes)
				all = append(all[:at], all[at+1:]...)
			}

			sum := int64(0)
			for _, h := range all {
				sum += h.bytes
			}
			if b.left != whole-sum || b.left < 0 {
				t.Fatalf("%d are left of %d, %d are held", b.left, whole, sum)
			}
		}

		for _, h := range all {
			b.give(h.owner, h.bytes)
		}
		if b.left != whole || len(b.large) != 0 {
			t.Fatalf("%d of %d came back; %v", b.left, whole, b.large)
		}
	})
}
