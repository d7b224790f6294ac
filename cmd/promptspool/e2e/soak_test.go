//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/api/ops"
)

// A day in short: the server comes and goes, and each time that everything was delivered
// the sidecar is measured. It must hold what it held before, however much has gone
// through it.
func TestADayInShortLeavesMemoryFilesAndDiskFlat(t *testing.T) {
	data, upstream := t.TempDir(), freePort(t)
	serverData := t.TempDir()
	sidecar := beginPlain(t, data, "127.0.0.1:0", "sidecar", "--name", "pod-1", "--upstream", "http://"+upstream)
	if !sidecar.takes() {
		t.Fatal("the sidecar does not start")
	}

	o := startOracle(t, adminKey)
	perAbsence := 400
	if soak(t, 1) > 0 {
		perAbsence = 50_000
	}

	var seen []holding
	var server *node
	for range rounds(t, 6, 0.25) {
		o.load(sidecar, 16, 2000, o.count().Acked+perAbsence)
		sidecar.eventually(
			func() bool { return o.count().Acked > 0 && sidecar.waiting() > 0 },
			func() string { return fmt.Sprintf("nothing waits: %+v", o.count()) },
		)
		server = beginPlain(t, serverData, upstream, "server", "--name", "central") // comes in the middle of the load
		if !server.takes() {
			t.Fatal("the server does not start")
		}
		reached(t, 10*time.Minute, func() bool { return !o.count().Loading }, "the load does not end")
		reached(t, 10*time.Minute, func() bool { return sidecar.waiting() == 0 }, "the spool does not empty")
		seen = append(seen, heldBy(t, sidecar))
		server.kill()
	}

	o.halt()
	for _, s := range []holding{seen[0], seen[len(seen)/2], seen[len(seen)-1]} {
		t.Log(s)
	}

	// An apparent growth may be garbage: it is collected, and given back in the
	// background. A leak stays.
	for try := 0; try < 20 && grown(seen) != ""; try++ {
		collectGarbage(t, sidecar)
		pauseFor(500 * time.Millisecond)
		seen[len(seen)-1] = heldBy(t, sidecar)
	}
	if fault := grown(seen); fault != "" {
		t.Errorf("%s, after %d events; measured each time that the spool was empty: %v", fault, o.count().Acked, seen)
	}

	server = beginPlain(t, serverData, upstream, "server", "--name", "central")
	if !server.takes() {
		t.Fatal("the server does not start")
	}
	o.wantAll(server)
}

// collectGarbage makes a process collect its garbage, as before a profile of its memory.
func collectGarbage(t *testing.T, n *node) {
	t.Helper()
	if err := ops.ControlLong(t.Context(), n.data, "GET", "/debug/pprof/heap?gc=1", nil, func(r io.Reader) error {
		_, err := io.Copy(io.Discard, r)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// holding is a process's share of the machine.
type holding struct {
	memory int64 // bytes of anonymous memory
	files  int64 // open files
	disk   int64 // bytes that its data folder occupies
}

func (h holding) String() string {
	return fmt.Sprintf("%.1f MiB anonymous, %d files, %.1f MiB on disk",
		float64(h.memory)/(1<<20), h.files, float64(h.disk)/(1<<20))
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
func grown(seen []holding) string {
	third := len(seen) / 3
	middle, end := lowest(seen[third:2*third]), lowest(seen[2*third:])
	for _, m := range []struct {
		name                string
		middle, end, varies int64
	}{
		{"anonymous memory", middle.memory, end.memory, memoryVaries},
		{"open files", middle.files, end.files, filesVary},
		{"disk", middle.disk, end.disk, diskVaries},
	} {
		if m.end > m.middle+m.varies {
			return fmt.Sprintf("%s grew from %d to %d", m.name, m.middle, m.end)
		}
	}
	return ""
}

func lowest(seen []holding) holding {
	l := seen[0]
	for _, s := range seen {
		l = holding{min(l.memory, s.memory), min(l.files, s.files), min(l.disk, s.disk)}
	}
	return l
}

func TestGrowthIsSeen(t *testing.T) {
	flat := slices.Repeat([]holding{{30 << 20, 40, 4 << 20}, {36 << 20, 45, 20 << 20}}, 6)
	if fault := grown(flat); fault != "" {
		t.Errorf("what only varies counts as growth: %s", fault)
	}
	for name, leak := range map[string]holding{
		"anonymous memory": {memory: 3 << 20}, "open files": {files: 4}, "disk": {disk: 8 << 20},
	} {
		leaking := slices.Clone(flat)
		for i := range leaking {
			n, l := int64(i), leaking[i]
			leaking[i] = holding{l.memory + n*leak.memory, l.files + n*leak.files, l.disk + n*leak.disk}
		}
		if fault := grown(leaking); !strings.HasPrefix(fault, name) {
			t.Errorf("%s leaks, and grown returns %q", name, fault)
		}
	}
}

// heldBy measures a process.
func heldBy(t testing.TB, n *node) holding {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return holding{memoryOf(t, n, "RssAnon"), int64(len(files)), occupied(t, n.data)}
}

// memoryOf returns a field of the process's status in bytes, such as RssAnon or VmHWM.
func memoryOf(t testing.TB, n *node, field string) int64 {
	t.Helper()
	return memoryOfProcess(t, n.cmd.Process.Pid, field)
}

func memoryOfProcess(t testing.TB, pid int, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), field+":")
	if after == "" {
		return 0 // it has just ended
	}
	kibibytes, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}

// occupied returns how many bytes of the disk a folder's files take.
func occupied(t testing.TB, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed meanwhile
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// reached is eventually for conditions that take long.
func reached(t *testing.T, patience time.Duration, condition func() bool, message string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(message)
		}
	}
}
