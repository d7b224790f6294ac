//go:build linux && soak

package cost

import (
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// The same attacks on a sidecar, in as much memory as it is promised to need.
func TestAnAttackedSidecarStaysSmall(t *testing.T) {
	t.Parallel()
	plain, err := harness.PlainBinary()
	if err != nil {
		t.Fatal(err)
	}
	server := harness.StartPlainServer(t, "127.0.0.1:0")
	sidecar := harness.Begin(t, harness.LimitMemory(t, plain, harness.CgroupBytes), nil, t.TempDir(), "127.0.0.1:0",
		"sidecar", "--upstream", "http://"+server.Addr)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat()) // so that the key is known

	p := target{t: t, addr: sidecar.Addr, client: harness.OwnClient(t, crowdCallers), partly: true}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			peak := harness.WatchMemory(t, sidecar)
			crowdOf(p.in(t), a, crowdSize, meter{t, sidecar.Cmd.Process.Pid}, meter{t, server.Cmd.Process.Pid})
			t.Logf("%s, sixteen at once: %d MiB", a.name, peak()>>20)
		})
		if sidecar.Ended() {
			t.Fatalf("%s: the sidecar was ended: signal %v", a.name, sidecar.DiedOf())
		}
	}

	// The server bounds the events of requests that never come: the rest waits in the
	// spool, and must not hold up what is behind it.
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	harness.Reached(t, 5*time.Minute, func() bool {
		return server.Get("/api/public/v2/requests/"+id).Status == 200
	}, "what is written after the attacks does not arrive")
}
