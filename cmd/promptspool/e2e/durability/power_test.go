//go:build linux

package durability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"promptspool/cmd/promptspool/e2e/harness"
)

// largeSpool is the bound of a spool whose power is cut. Small bodies fill it late, so the bound of
// what is accepted before a key is verified is moved out of the way.
const largeSpool = "4GiB"

// imageMebibytes has space for two generations with logs of full size; most of it is never
// written.
const imageMebibytes = 320

func TestAPowerCutLosesNothingThatWasAcked(t *testing.T) {
	t.Parallel()
	for round := range harness.Rounds(t, 1, 0.2) {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) {
			// In turn: small writes of many, large writes that fill generations, one
			// writer alone.
			load := []harness.Order{
				{Writers: 16, Bytes: 500, Acks: 400},
				{Writers: 4, Bytes: 64 << 10, Acks: 200},
				{Writers: 1, Bytes: 2000, Acks: 50},
			}[round%3]
			load.Acks += 37 * (round / 3) // another moment each time
			system := harness.Ext4
			if harness.Soak(t, 1) > 0 {
				system = harness.FileSystems[(round+round/3)%3] // another one for each load
			}

			// Every other time the kernel writes the write-ahead log early, as it does
			// when somebody runs `sync`.
			o, server, sidecar := powerCut(t, system, load, round%2 == 0)
			if sidecar == nil {
				t.Fatal("the sidecar does not start after the power cut")
			}

			sidecar.Emptied()
			a := o.WantAll(server)
			if s := sidecar.SpoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
				t.Errorf("the spool says %v", s)
			}
			t.Logf("%s: %d acked, %d unsure, of which the spool misses %v",
				system.Name, a.Acked, a.Unsure, sidecar.SpoolStatus()["uncertain"])
		})
	}
}

// The same with a spool that does not sync must lose something: otherwise the test above
// would pass for any spool.
func TestAPowerCutIsSeenByTheOracleWhenNothingIsSynced(t *testing.T) {
	t.Parallel()
	load := harness.Order{Writers: 16, Bytes: 500, Acks: 400}
	o, server, sidecar := powerCut(t, harness.Ext4, load, false, "PROMPTSPOOL_UNSAFE_NO_SYNC=1")
	if sidecar != nil {
		sidecar.Emptied()
	}

	a := o.Verify(server)
	if a.Lost == 0 {
		t.Errorf("without syncs all %d acked writes are there; the harness sees no power cut", a.Acked)
	}

	t.Logf("%d acked, %d lost", a.Acked, a.Lost)
}

// powerCut loads a sidecar whose data is on an image and whose server is away, until
// enough was acked, and cuts its power in the middle of the load. Then it starts the
// server, and a sidecar on what was on the disk; it returns nil for a sidecar that does
// not start. With early, the write-ahead log is written before the spool syncs it.
func powerCut(
	t *testing.T, system harness.FileSystem, load harness.Order, early bool, env ...string,
) (*harness.Oracle, *harness.Node, *harness.Node) {
	t.Helper()
	disk, upstream := harness.NewImage(t, system, t.TempDir(), imageMebibytes, true), harness.FreePort(t)
	sidecar := beginCrashing(t, largeSpool, filepath.Join(disk.Mount, "data"), "127.0.0.1:0", upstream, env...)
	if !sidecar.Takes() {
		t.Fatal("the sidecar does not start")
	}

	calm := func() {}
	if early {
		calm = writeEarly(t, filepath.Join(disk.Mount, "data", "spool"))
	}
	o := harness.StartOracle(t, harness.AdminKey)
	o.Load(sidecar, load.Writers, load.Bytes, 0)
	sidecar.Eventually(
		func() bool { return o.Count().Acked >= load.Acks },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.Count()) },
	)

	freeze(sidecar)
	calm()
	o.Halt()

	after := disk.AfterPowerCut()
	sidecar.Kill()
	disk.Detach()

	server := harness.StartPlainServer(t, upstream)
	sidecar = beginCrashing(t, largeSpool, filepath.Join(after.Mount, "data"), "127.0.0.1:0", upstream)
	if !sidecar.Takes() {
		return o, server, nil
	}
	return o, server, sidecar
}

// writeEarly has the kernel write the newest write-ahead log again and again, until stop
// is called.
func writeEarly(t *testing.T, spool string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())

	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			logs, _ := filepath.Glob(filepath.Join(spool, "gen-*", "*.mem"))
			if len(logs) == 0 {
				continue
			}

			file, err := os.Open(logs[len(logs)-1])
			if err != nil {
				continue // it has been sealed meanwhile
			}

			for range 20 {
				_ = unix.SyncFileRange(int(file.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
			}
			_ = file.Close()
		}
	})
	return func() {
		cancel()
		writing.Wait()
	}
}

// freeze stops the process where it is, and waits until no thread runs.
func freeze(n *harness.Node) {
	n.T.Helper()
	if err := n.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		n.T.Fatal(err)
	}
	threads := fmt.Sprintf("/proc/%d/task/*/stat", n.Cmd.Process.Pid)

	n.Eventually(func() bool {
		files, _ := filepath.Glob(threads)
		for _, f := range files {
			text, err := os.ReadFile(f)
			// The state follows the name in parentheses. D, waiting for the disk, has not
			// stopped yet.
			if _, state, ok := strings.Cut(string(text), ") "); err == nil && (!ok || state[0] != 'T') {
				return false
			}
		}

		return true
	}, func() string { return "the process does not stop" })
}
