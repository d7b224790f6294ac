//go:build linux

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"promptspool/metrics/parts"
)

// The image of the disk is on a tmpfs that is smaller, and then full: what the kernel
// writes to it gets an I/O error, and so does every sync. Callers must learn of it, the
// process must end, and the next one must deliver what was acked.
func TestASyncThatFailsEndsTheSidecarAndLosesNothingThatWasAcked(t *testing.T) {
	t.Parallel()
	under := mountTmpfs(t, t.TempDir())
	disk, upstream := newImageIn(t, under, 256, false), freePort(t)
	data := filepath.Join(disk.mount, "data")
	sidecar := startSidecar(t, data, upstream)
	o := startOracle(t, adminKey)
	o.load(sidecar, 1, 2000, 0)
	callers := callUntilRefused(sidecar, 8)
	sidecar.eventually(
		func() bool { return o.count().Acked >= 50 },
		func() string { return "the load does not proceed" },
	)

	filler := filepath.Join(under, "filler")
	fill(t, filler)
	full := time.Now()
	sidecar.eventually(sidecar.ended, func() string { return "the sidecar goes on:\n" + sidecar.logged() })
	signal := sidecar.diedOf()
	saidWhy := strings.Contains(lastLine(sidecar.logged()), "the spool failed")
	if signal > 0 || sidecar.cmd.ProcessState.ExitCode() != 1 || !saidWhy {
		t.Errorf("the sidecar ends with %v, and its last line is %s",
			sidecar.cmd.ProcessState, lastLine(sidecar.logged()))
	}

	took := time.Since(full)
	if took > 10*time.Second {
		t.Errorf("the sidecar ended %v after the disk was full; want a few seconds", took)
	}

	// How many waited at that moment is chance: none did if all were in a commit that
	// hung until the process ended. One of them may be the oracle's.
	ids, refusals := callers()
	if waited := strings.Count(sidecar.logged(), "The spool refused a write"); len(refusals) < waited-1 {
		t.Errorf("of %d writes that waited, %d callers were answered", waited, len(refusals))
	}

	for _, r := range refusals {
		isExplained := strings.Contains(string(r.Body), "The disk under the spool failed")
		if r.Status != 503 || r.Header.Get("Retry-After") == "" || !isExplained {
			t.Errorf("a write that waited was answered %d %s", r.Status, r.Body)
		}
	}
	o.halt()

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	disk.detach()
	disk.attach()
	server := startPlainServer(t, upstream)
	sidecar = startSidecar(t, data, upstream)
	sidecar.emptied()
	if s := sidecar.spoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}

	a := o.wantAll(server)
	for _, id := range ids {
		server.record(id, events(1))
	}
	t.Logf("%d and %d acked, %d of 8 callers were answered; it ended after %v",
		a.Acked, len(ids), len(refusals), took.Round(time.Millisecond))
}

// mountTmpfs mounts 64 MiB of memory on a folder, which it makes, until the test ends.
func mountTmpfs(t *testing.T, dir string) string {
	t.Helper()
	parts.Need(t, "root")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Fatalf("cannot mount a tmpfs: %v; this test needs root", err)
	}
	t.Cleanup(func() {
		err := syscall.Unmount(dir, 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the test may have removed it
			t.Errorf("the tmpfs %s stays mounted: %v", dir, err)
		}
	})
	return dir
}

// callUntilRefused has callers write to a node, each until an answer other than 200. The
// function that it returns waits for them, and returns the ids that were acked and the
// other answers; a caller whose connection broke has none.
func callUntilRefused(n *node, callers int) func() (ids []string, refusals []reply) {
	var mu sync.Mutex
	var ids []string
	var refusals []reply
	var all sync.WaitGroup

	for range callers {
		all.Go(func() {
			for {
				r, err := n.try("POST", "/rest/track-request", chat(), "X-API-KEY", adminKey)
				mu.Lock()
				switch id, _ := r.JSON["request_id"].(string); {
				case err != nil:
				case r.Status == 200:
					ids = append(ids, id)
				default:
					refusals = append(refusals, r)
				}
				mu.Unlock()
				if err != nil || r.Status != 200 {
					return
				}
			}
		})
	}
	return func() ([]string, []reply) {
		all.Wait()
		return ids, refusals
	}
}

// The same under a server.
func TestASyncThatFailsEndsTheServerWithTheReason(t *testing.T) {
	t.Parallel()
	under := mountTmpfs(t, t.TempDir())
	disk := newImageIn(t, under, 1024, false)
	data := filepath.Join(disk.mount, "data")
	server := startServer(t, data, "127.0.0.1:0")
	callers := callUntilRefused(server, 4)
	server.eventually(
		func() bool { return server.total(map[string]any{}) >= 20 },
		func() string { return "the load does not proceed" },
	)

	filler := filepath.Join(under, "filler")
	fill(t, filler)
	server.eventually(server.ended, func() string { return "the server goes on:\n" + server.logged() })
	callers()
	signal := server.diedOf()
	saidWhy := strings.Contains(lastLine(server.logged()), "could not be made durable")
	if signal > 0 || server.cmd.ProcessState.ExitCode() != 1 || !saidWhy {
		t.Errorf("the server ends with %v, and its last line is %s",
			server.cmd.ProcessState, lastLine(server.logged()))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
}
