//go:build linux

package durability

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

// The image of the disk is on a tmpfs that is smaller, and then full: what the kernel
// writes to it gets an I/O error, and so does every sync. Callers must learn of it, the
// process must end, and the next one must deliver what was acked.
func TestASyncThatFailsEndsTheSidecarAndLosesNothingThatWasAcked(t *testing.T) {
	t.Parallel()
	under := harness.MountTmpfs(t, t.TempDir())
	disk, upstream := harness.NewImageIn(t, under, 256, false), harness.FreePort(t)
	data := filepath.Join(disk.Mount, "data")
	sidecar := harness.StartSidecar(t, data, upstream)
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, 1, 2000, 0)
	callers := callUntilRefused(sidecar, 8)
	sidecar.Eventually(
		func() bool { return o.Count().Acked >= 50 },
		func() string { return "the load does not proceed" },
	)

	filler := filepath.Join(under, "filler")
	fill(t, filler)
	full := time.Now()
	sidecar.Eventually(sidecar.Ended, func() string { return "the sidecar goes on:\n" + sidecar.Logged() })
	signal := sidecar.DiedOf()
	saidWhy := strings.Contains(harness.LastLine(sidecar.Logged()), "the spool failed")
	if signal > 0 || sidecar.Cmd.ProcessState.ExitCode() != 1 || !saidWhy {
		t.Errorf("the sidecar ends with %v, and its last line is %s",
			sidecar.Cmd.ProcessState, harness.LastLine(sidecar.Logged()))
	}

	took := time.Since(full)
	if took > 10*time.Second {
		t.Errorf("the sidecar ended %v after the disk was full; want a few seconds", took)
	}

	// How many waited at that moment is chance: none did if all were in a commit that
	// hung until the process ended. One of them may be the oracle's.
	ids, refusals := callers()
	if waited := strings.Count(sidecar.Logged(), "The spool refused a write"); len(refusals) < waited-1 {
		t.Errorf("of %d writes that waited, %d callers were answered", waited, len(refusals))
	}

	for _, r := range refusals {
		isExplained := strings.Contains(string(r.Body), "The disk under the spool failed")
		if r.Status != 503 || r.Header.Get("Retry-After") == "" || !isExplained {
			t.Errorf("a write that waited was answered %d %s", r.Status, r.Body)
		}
	}
	o.Halt()

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	disk.Detach()
	disk.Attach()
	server := harness.StartPlainServer(t, upstream)
	sidecar = harness.StartSidecar(t, data, upstream)
	sidecar.Emptied()
	if s := sidecar.SpoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
		t.Errorf("the spool says %v", s)
	}

	a := o.WantAll(server)
	for _, id := range ids {
		server.Record(id, harness.Events(1))
	}
	t.Logf("%d and %d acked, %d of 8 callers were answered; it ended after %v",
		a.Acked, len(ids), len(refusals), took.Round(time.Millisecond))
}

// callUntilRefused has callers write to a node, each until an answer other than 200. The
// function that it returns waits for them, and returns the ids that were acked and the
// other answers; a caller whose connection broke has none.
func callUntilRefused(n *harness.Node, callers int) func() (ids []string, refusals []harness.Reply) {
	var mu sync.Mutex
	var ids []string
	var refusals []harness.Reply
	var all sync.WaitGroup

	for range callers {
		all.Go(func() {
			for {
				r, err := n.Try("POST", "/rest/track-request", harness.Chat(), "X-API-KEY", harness.AdminKey)
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
	return func() ([]string, []harness.Reply) {
		all.Wait()
		return ids, refusals
	}
}

// The same under a server.
func TestASyncThatFailsEndsTheServerWithTheReason(t *testing.T) {
	t.Parallel()
	under := harness.MountTmpfs(t, t.TempDir())
	disk := harness.NewImageIn(t, under, 1024, false)
	data := filepath.Join(disk.Mount, "data")
	server := harness.StartServer(t, data, "127.0.0.1:0")
	callers := callUntilRefused(server, 4)
	server.Eventually(
		func() bool { return server.Total(map[string]any{}) >= 20 },
		func() string { return "the load does not proceed" },
	)

	filler := filepath.Join(under, "filler")
	fill(t, filler)
	server.Eventually(server.Ended, func() string { return "the server goes on:\n" + server.Logged() })
	callers()
	signal := server.DiedOf()
	saidWhy := strings.Contains(harness.LastLine(server.Logged()), "could not be made durable")
	if signal > 0 || server.Cmd.ProcessState.ExitCode() != 1 || !saidWhy {
		t.Errorf("the server ends with %v, and its last line is %s",
			server.Cmd.ProcessState, harness.LastLine(server.Logged()))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
}
