//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const (
	idleWindow  = 30 * time.Second
	pacedWindow = 20 * time.Second
	pacedRate   = 1000 // writes a second
)

// BenchmarkIdle measures how much of a processor an idle sidecar takes: its server is
// there, it knows a key, polls for changes and sends heartbeats. The floor is a handler
// that is not called.
func BenchmarkIdle(b *testing.B) {
	for range b.N {
		sidecar := startDelivering(b)
		_, floor := startFloorProcess(b)
		pauseFor(5 * time.Second) // until the work of starting is done

		before, beforeFloor, begun := cpuOf(b, sidecar), cpuOfProcess(b, floor), time.Now()
		pauseFor(idleWindow)

		percent := func(cpu time.Duration) float64 { return 100 * cpu.Seconds() / time.Since(begun).Seconds() }
		fmt.Printf("\nidle for %v: %.2f %% of a core; a handler that is not called %.2f %%\n",
			idleWindow, percent(cpuOf(b, sidecar)-before), percent(cpuOfProcess(b, floor)-beforeFloor))
		sidecar.kill()
	}
}

// BenchmarkPaced measures how much of a processor a sidecar takes for writes of 4 KB at
// an even pace, which it forwards to a server in another process. The floor is a handler
// that keeps them in a bare file, with one fdatasync for all that wait, and forwards
// nothing.
func BenchmarkPaced(b *testing.B) {
	for range b.N {
		p := pressure{
			Connections: 16,
			Bytes:       4096,
			Time:        pacedWindow,
			PerSecond:   pacedRate,
			Requests:    pacedRate * int64(pacedWindow/time.Second),
		}

		dir := b.TempDir()
		addr, floor := startFloorProcess(b, "FLOOR="+dir)
		p.Addr = addr
		before := cpuOfProcess(b, floor)
		press(b, p)
		bare := cpuOfProcess(b, floor) - before
		_ = os.Remove(filepath.Join(dir, "log"))

		sidecar := startDelivering(b)
		p.Addr = sidecar.addr
		before = cpuOf(b, sidecar)
		got := press(b, p)
		sidecar.eventually(
			func() bool { return sidecar.waiting() == 0 },
			func() string { return "the spool does not empty" },
		)
		cpu := cpuOf(b, sidecar) - before
		fmt.Printf("\n%.0f writes of 4 KB a second, forwarded: %.3f of a core (p50 %s p99 %s); "+
			"a bare file without forwarding %.3f\n",
			got.PerSecond, cpu.Seconds()/pacedWindow.Seconds(), short(got.P50), short(got.P99),
			bare.Seconds()/pacedWindow.Seconds())
		sidecar.kill()
	}
}

// startDelivering starts a server, and a sidecar that knows a key and delivers to it.
func startDelivering(b *testing.B) *node {
	b.Helper()
	upstream := freePort(b)
	server := beginPlain(b, b.TempDir(), upstream, "server")
	sidecar := beginMeasured(b, b.TempDir(), upstream)
	if !server.takes() || !sidecar.takes() {
		b.Fatal("server or sidecar do not start")
	}
	sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.eventually(
		func() bool { return sidecar.waiting() == 0 },
		func() string { return "the spool does not empty" },
	)

	return sidecar
}
