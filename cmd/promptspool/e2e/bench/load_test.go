//go:build linux && bench

package bench

import (
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

func BenchmarkSidecarsThatComeBackAtOnce(b *testing.B) {
	for range b.N {
		server := harness.BeginPlain(b, b.TempDir(), "127.0.0.1:0", "server", "--name", "central")
		if !server.Takes() {
			b.Fatal("the server does not start")
		}
		const sidecars, events = 5000, 5
		begun := time.Now()
		c, memory := harness.NewCrowd(b, server), harness.WatchMemory(b, server)
		took := c.Storm([]string{harness.AdminKey}, sidecars, events, 2*time.Minute)[0]

		b.ReportMetric(sidecars*events/time.Since(begun).Seconds(), "events/s")
		b.ReportMetric(took[sidecars/2].Seconds(), "s-median")
		b.ReportMetric(took[sidecars-1].Seconds(), "s-last")
		b.ReportMetric(float64(c.Turned.Load()), "turned-away")
		b.ReportMetric(float64(memory()>>20), "MiB-memory")
		server.Kill()
	}
}
