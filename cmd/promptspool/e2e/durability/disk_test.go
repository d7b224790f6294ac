//go:build linux && soak

package durability

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"promptspool/cmd/promptspool/e2e/harness"
)

// A disk of 64 MiB is filled from inside, by writes that are not delivered, and from
// outside, to the last block. The sidecar refuses with 503, also after a kill and a new
// start, and resumes when there is space.
func TestAFullDiskLosesNothingThatWasAckedAndStopsNobody(t *testing.T) {
	t.Parallel()
	for round := range harness.Rounds(t, 1, 0.1) {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) { fillDisk(t, []int{64 << 10, 2000, 300}[round%3]) })
	}
}

func fillDisk(t *testing.T, bytes int) {
	disk := harness.NewImage(t, harness.Ext4, t.TempDir(), 64, true)
	upstream, addr := harness.FreePort(t), harness.FreePort(t)
	data := filepath.Join(disk.Mount, "data")
	start := func() *harness.Node {
		t.Helper()
		return harness.Launch(t, data, addr, "sidecar", "--name", "pod-1", "--upstream", "http://"+upstream,
			"--drain", "100ms")
	}

	sidecar := start()
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, 4, bytes, 0)

	refused := func() {
		t.Helper()
		before := o.Count().Unsure
		isRefusing := func() bool {
			a := o.Count()
			return sidecar.Ended() || a.Unsure > before+20 && strings.HasPrefix(a.Refusal, "503 ")
		}
		sidecar.WhileItMoves(
			isRefusing,
			func() any { return o.Count().Acked },
			func() string { return fmt.Sprintf("nothing is taken or refused: %+v", o.Count()) },
		)

		if sidecar.Ended() {
			t.Fatalf("the sidecar ended: signal %v", sidecar.DiedOf())
		}
	}

	refused() // by the sidecar's own bound
	inside := o.Count().Acked
	outside := filepath.Join(disk.Mount, "of others")
	fill(t, outside)
	refused()

	if inside == 0 {
		t.Errorf("nothing was taken before the disk was full: %+v", o.Count())
	}

	sidecar.Kill()
	sidecar = harness.Begin(t, harness.Program(t), nil, data, addr,
		"sidecar", "--name", "pod-1", "--upstream", "http://"+upstream, "--drain", "100ms")
	if sidecar.Takes() {
		refused()
		sidecar.Stop()
	} else if sidecar.DiedOf() > 0 || !strings.Contains(harness.LastLine(sidecar.Logged()), "free") {
		t.Errorf("on a full disk the sidecar ends without asking for free space: %v\n%s",
			sidecar.Cmd.ProcessState, sidecar.Logged())
	}

	if err := os.Remove(outside); err != nil {
		t.Fatal(err)
	}

	// There is space and a server again.
	server := harness.StartPlainServer(t, upstream)
	sidecar = start()
	o.Halt()
	sidecar.Emptied()
	o.Loaded(sidecar, 4, bytes, o.Count().Acked+20) // it takes writes again
	sidecar.Emptied()

	a := o.WantAll(server)
	if s := sidecar.SpoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}

	t.Logf("%d acked before it was full, %d in all, %d refused", inside, a.Acked, a.Unsure)
}
