//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A disk of 64 MiB is filled from inside, by writes that are not delivered, and from
// outside, to the last block. The sidecar refuses with 503, also after a kill and a new
// start, and resumes when there is room.
func TestAFullDiskLosesNothingThatWasAckedAndStopsNobody(t *testing.T) {
	t.Parallel()
	for round := range rounds(t, 1, 0.1) {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) { fillDisk(t, []int{64 << 10, 2000, 300}[round%3]) })
	}
}

func fillDisk(t *testing.T, bytes int) {
	disk, upstream, addr := newImage(t, 64), freePort(t), freePort(t)
	data := filepath.Join(disk.mount, "data")
	start := func() *node {
		t.Helper()
		return launch(t, data, addr, "sidecar", "--name", "pod-1", "--upstream", "http://"+upstream, "--drain", "100ms")
	}

	sidecar := start()
	o := startOracle(t, adminKey)
	o.load(sidecar, 4, bytes, 0)

	refused := func() {
		t.Helper()
		before := o.count().Unsure
		isRefusing := func() bool {
			a := o.count()
			return sidecar.ended() || a.Unsure > before+20 && strings.HasPrefix(a.Refusal, "503 ")
		}
		sidecar.whileItMoves(
			isRefusing,
			func() any { return o.count().Acked },
			func() string { return fmt.Sprintf("nothing is taken or refused: %+v", o.count()) },
		)

		if sidecar.ended() {
			t.Fatalf("the sidecar ended: signal %v", sidecar.diedOf())
		}
	}

	refused() // by the sidecar's own bound
	inside := o.count().Acked
	outside := filepath.Join(disk.mount, "of others")
	fill(t, outside)
	refused()

	if inside == 0 {
		t.Errorf("nothing was taken before the disk was full: %+v", o.count())
	}

	sidecar.kill()
	sidecar = begin(t, program(t), nil, data, addr,
		"sidecar", "--name", "pod-1", "--upstream", "http://"+upstream, "--drain", "100ms")
	if sidecar.takes() {
		refused()
		sidecar.stop()
	} else if sidecar.diedOf() > 0 || !strings.Contains(lastLine(sidecar.logged()), "free") {
		t.Errorf("on a full disk the sidecar ends without asking for free space: %v\n%s",
			sidecar.cmd.ProcessState, sidecar.logged())
	}

	if err := os.Remove(outside); err != nil {
		t.Fatal(err)
	}

	// There is room and a server again.
	server := startPlainServer(t, upstream)
	sidecar = start()
	o.halt()
	sidecar.emptied()
	o.loaded(sidecar, 4, bytes, o.count().Acked+20) // it takes writes again
	sidecar.emptied()

	a := o.wantAll(server)
	if s := sidecar.spoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}

	t.Logf("%d acked before it was full, %d in all, %d refused", inside, a.Acked, a.Unsure)
}

// fill writes a file until not one block of the disk is free.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size >= 512; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}

	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
}
