//go:build linux && soak

package durability

import (
	"fmt"
	"io"
	"testing"
	"time"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/e2e/harness"
)

// A day in short: the server comes and goes, and each time that everything was delivered
// the sidecar is measured. It must hold what it held before, however much has gone
// through it.
func TestADayInShortLeavesMemoryFilesAndDiskFlat(t *testing.T) {
	data, upstream := t.TempDir(), harness.FreePort(t)
	serverData := t.TempDir()
	sidecar := harness.BeginPlain(t, data, "127.0.0.1:0", "sidecar", "--name", "pod-1", "--upstream",
		"http://"+upstream)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}

	o := harness.StartOracle(t, harness.AdminKey)
	const perAbsence = 50_000

	var seen []harness.Holding
	var server *harness.Node
	for range harness.Rounds(t, 6, 0.25) {
		o.Load(sidecar, 16, 2000, o.Count().Acked+perAbsence)
		sidecar.Eventually(
			func() bool { return o.Count().Acked > 0 && sidecar.Waiting() > 0 },
			func() string { return fmt.Sprintf("nothing waits: %+v", o.Count()) },
		)
		server = harness.BeginPlain(t, serverData, upstream, "server", "--name",
			"central") // comes in the middle of the load
		if !server.Takes() {
			t.Fatal("the server does not start")
		}
		harness.Reached(t, 10*time.Minute, func() bool { return !o.Count().Loading }, "the load does not end")
		harness.Reached(t, 10*time.Minute, func() bool { return sidecar.Waiting() == 0 }, "the spool does not empty")
		seen = append(seen, harness.HeldBy(t, sidecar))
		server.Kill()
	}

	o.Halt()
	for _, s := range []harness.Holding{seen[0], seen[len(seen)/2], seen[len(seen)-1]} {
		t.Log(s)
	}

	// An apparent growth may be garbage: it is collected, and given back in the
	// background. A leak stays.
	for try := 0; try < 20 && grown(seen) != ""; try++ {
		collectGarbage(t, sidecar)
		harness.PauseFor(500 * time.Millisecond)
		seen[len(seen)-1] = harness.HeldBy(t, sidecar)
	}
	if fault := grown(seen); fault != "" {
		t.Errorf("%s, after %d events; measured each time that the spool was empty: %v", fault, o.Count().Acked, seen)
	}

	server = harness.BeginPlain(t, serverData, upstream, "server", "--name", "central")
	if !server.Takes() {
		t.Fatal("the server does not start")
	}
	o.WantAll(server)
}

// collectGarbage makes a process collect its garbage, as before a profile of its memory.
func collectGarbage(t *testing.T, n *harness.Node) {
	t.Helper()
	if err := ops.ControlLong(t.Context(), n.Data, "GET", "/debug/pprof/heap?gc=1", nil, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
