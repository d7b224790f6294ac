//go:build linux

package delivery

import (
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestSpoolDrainBringsHeldEventsHomeWhenTheServerTakesTheirKey(t *testing.T) {
	t.Parallel()
	addr, data := harness.FreePort(t), t.TempDir()
	sidecar := harness.StartSidecar(t, t.TempDir(), addr)
	id := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Track("/rest/track-score", harness.AdminKey, harness.Score(id, 50))
	env := []string{"PROMPTSPOOL_BOOTSTRAP_KEY=another-key-of-more-than-thirty-two-characters"}
	forgetful := harness.Begin(t, harness.Program(t), env, data, addr, "server", "--name", "central")
	if !forgetful.Takes() {
		t.Fatal("the server does not start")
	}
	sidecar.Eventually(
		func() bool { return sidecar.SpoolStatus()["held"] == 2.0 },
		func() string { return "nothing is held" },
	)

	sidecar.Stop()

	drain := func(code int, says string) {
		t.Helper()
		out, errs := harness.Run(t, code, "spool", "drain", "--data", sidecar.Data, "--upstream", "http://"+addr)
		if !strings.Contains(out+errs, says) {
			t.Errorf("it says %s%s; want %q", out, errs, says)
		}
	}

	drain(1, "the server refused 2 events by the key")

	forgetful.Kill()
	server := harness.StartServer(t, data, addr)
	drain(0, "0        0     0")
	server.Record(id, harness.Events(2))
}
