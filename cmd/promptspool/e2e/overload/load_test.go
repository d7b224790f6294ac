//go:build linux

package overload

import (
	"slices"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// loadedServerBytesMax bounds a server's own memory under these loads.
const loadedServerBytesMax = 512 << 20

func TestThousandsOfSidecarsThatComeBackAtOnceAllGetThrough(t *testing.T) {
	t.Parallel()
	sidecars, modest := 1000, 2
	long := harness.Soak(t, 1) > 0
	if long {
		sidecars, modest = 3000, 15
	}
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	keys := harness.AccountKeys(t, server, 1+modest)
	c, memory := harness.NewCrowd(t, server), harness.WatchMemory(t, server)
	const events = 5
	took := c.Storm(keys, sidecars, events, 60*time.Second)
	peak, all := memory(), slices.Sorted(slices.Values(slices.Concat(took...)))
	t.Logf("%d sidecars with %d events each: median %v, last %v, %d turned away, %d MiB of memory",
		sidecars, events, all[len(all)/2], all[len(all)-1], c.Turned.Load(), peak>>20)

	greedy := took[0]
	t.Logf("half of them with one key: median %v, last %v", greedy[len(greedy)/2], greedy[len(greedy)-1])
	for k, times := range took {
		if n := server.TotalOf(keys[k], map[string]any{}); n != len(times)*events {
			t.Errorf("of key %d %d records arrived, of %d", k, n, len(times)*events)
		}

		median := times[len(times)/2]
		if k > 0 {
			t.Logf("%d of them with another: median %v, last %v", len(times), median, times[len(times)-1])
		}

		// Nobody waits because another key has more sidecars. Only the long form checks
		// it: it runs alone, and other tests would take turns at the processor.
		if long && median > greedy[len(greedy)/2]*3/2 {
			t.Errorf("the %d sidecars of key %d took %v, those of the greedy one %v",
				len(times), k, median, greedy[len(greedy)/2])
		}
	}

	if peak > loadedServerBytesMax {
		t.Errorf("the server had %d MiB of memory", peak>>20)
	}
}
