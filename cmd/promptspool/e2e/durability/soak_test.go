//go:build linux

package durability

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"promptspool/api/ops"
	"promptspool/cmd/promptspool/e2e/harness"
)

// A day in short: the server comes and goes, and each time that everything was delivered
// the sidecar is measured. It must hold what it held before, however much has gone
// through it.
func TestADayInShortLeavesMemoryFilesAndDiskFlat(t *testing.T) {
	if harness.Soak(t, 1) == 0 {
		return // in a few minutes, only what is far too much would show: see TestGrowthIsSeen
	}
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

// Between the middle and the end nothing may grow by more than this, which is how much it
// varies from one moment to the next: the garbage collector's progress, idle connections,
// a generation more or less.
const (
	memoryVaries = 8 << 20
	filesVary    = 12
	diskVaries   = 20 << 20
)

// grown compares the end with the middle, each by the lowest of a third of the
// measurements, and returns what has grown; "" if nothing has.
func grown(seen []harness.Holding) string {
	third := len(seen) / 3
	middle, end := lowest(seen[third:2*third]), lowest(seen[2*third:])
	for _, m := range []struct {
		name                string
		middle, end, varies int64
	}{
		{"anonymous memory", middle.Memory, end.Memory, memoryVaries},
		{"open files", middle.Files, end.Files, filesVary},
		{"disk", middle.Disk, end.Disk, diskVaries},
	} {
		if m.end > m.middle+m.varies {
			return fmt.Sprintf("%s grew from %d to %d", m.name, m.middle, m.end)
		}
	}
	return ""
}

func lowest(seen []harness.Holding) harness.Holding {
	l := seen[0]
	for _, s := range seen {
		l.Memory, l.Files, l.Disk = min(l.Memory, s.Memory), min(l.Files, s.Files), min(l.Disk, s.Disk)
	}
	return l
}

func TestGrowthIsSeen(t *testing.T) {
	flat := slices.Repeat([]harness.Holding{
		{Memory: 30 << 20, Files: 40, Disk: 4 << 20}, {Memory: 36 << 20, Files: 45, Disk: 20 << 20},
	}, 6)
	if fault := grown(flat); fault != "" {
		t.Errorf("what only varies counts as growth: %s", fault)
	}
	for name, leak := range map[string]harness.Holding{
		"anonymous memory": {Memory: 3 << 20}, "open files": {Files: 4}, "disk": {Disk: 8 << 20},
	} {
		leaking := slices.Clone(flat)
		for i := range leaking {
			l, n := &leaking[i], int64(i)
			l.Memory += n * leak.Memory
			l.Files += n * leak.Files
			l.Disk += n * leak.Disk
		}
		if fault := grown(leaking); !strings.HasPrefix(fault, name) {
			t.Errorf("%s leaks, and grown returns %q", name, fault)
		}
	}
}
