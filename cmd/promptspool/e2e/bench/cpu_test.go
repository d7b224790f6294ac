//go:build linux && bench

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
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
		harness.PauseFor(5 * time.Second) // until the work of starting is done

		before, beforeFloor, begun := cpuOf(b, sidecar), cpuOfProcess(b, floor), time.Now()
		harness.PauseFor(idleWindow)

		percent := func(cpu time.Duration) float64 { return 100 * cpu.Seconds() / time.Since(begun).Seconds() }
		fmt.Printf("\nidle for %v: %.2f %% of a core; a handler that is not called %.2f %%\n",
			idleWindow, percent(cpuOf(b, sidecar)-before), percent(cpuOfProcess(b, floor)-beforeFloor))
		sidecar.Kill()
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
		p.Addr = sidecar.Addr
		before = cpuOf(b, sidecar)
		got := press(b, p)
		sidecar.Eventually(
			func() bool { return sidecar.Waiting() == 0 },
			func() string { return "the spool does not empty" },
		)
		cpu := cpuOf(b, sidecar) - before
		fmt.Printf("\n%.0f writes of 4 KB a second, forwarded: %.3f of a core (p50 %s p99 %s); "+
			"a bare file without forwarding %.3f\n",
			got.PerSecond, cpu.Seconds()/pacedWindow.Seconds(), harness.Rounded(got.P50), harness.Rounded(got.P99),
			bare.Seconds()/pacedWindow.Seconds())
		sidecar.Kill()
	}
}

// startDelivering starts a server, and a sidecar that knows a key and delivers to it.
func startDelivering(b *testing.B) *harness.Node {
	b.Helper()
	upstream := harness.FreePort(b)
	server := harness.BeginPlain(b, b.TempDir(), upstream, "server")
	sidecar := beginMeasured(b, b.TempDir(), upstream)
	if !server.Takes() || !sidecar.Takes() {
		b.Fatal("server or sidecar do not start")
	}
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Eventually(
		func() bool { return sidecar.Waiting() == 0 },
		func() string { return "the spool does not empty" },
	)

	return sidecar
}

// cpuOf returns the processor time that a process has used.
func cpuOf(b testing.TB, n *harness.Node) time.Duration { return cpuOfProcess(b, n.Cmd.Process.Pid) }

func cpuOfProcess(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)

	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // the kernel counts in hundredths
}
