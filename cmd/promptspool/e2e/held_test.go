//go:build linux

package e2e

import (
	"strings"
	"testing"
)

func TestSpoolDrainBringsHeldEventsHomeWhenTheServerTakesTheirKey(t *testing.T) {
	t.Parallel()
	addr, data := freePort(t), t.TempDir()
	sidecar := startSidecar(t, t.TempDir(), addr)
	id := sidecar.track("/rest/track-request", adminKey, chat())
	sidecar.track("/rest/track-score", adminKey, score(id, 50))
	env := []string{"PROMPTSPOOL_BOOTSTRAP_KEY=another-key-of-more-than-thirty-two-characters"}
	forgetful := begin(t, program(t), env, data, addr, "server", "--name", "central")
	if !forgetful.takes() {
		t.Fatal("the server does not start")
	}
	sidecar.eventually(
		func() bool { return sidecar.spoolStatus()["held"] == 2.0 },
		func() string { return "nothing is held" },
	)

	sidecar.stop()

	drain := func(code int, says string) {
		t.Helper()
		out, errs := promptspool(t, code, "spool", "drain", "--data", sidecar.data, "--upstream", "http://"+addr)
		if !strings.Contains(out+errs, says) {
			t.Errorf("it says %s%s; want %q", out, errs, says)
		}
	}

	drain(1, "the server refused 2 events by the key")

	forgetful.kill()
	server := startServer(t, data, addr)
	drain(0, "0        0     0")
	server.record(id, events(2))
}
