//go:build linux

package e2e

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
)

// imageMebibytes has room for two generations with logs of full size; most of it is never
// written.
const imageMebibytes = 320

func TestAPowerCutLosesNothingThatWasAcked(t *testing.T) {
	t.Parallel()
	for round := range rounds(t, 2, 0.2) {
		t.Run(fmt.Sprint(round+1), func(t *testing.T) {
			// In turn: small writes of many, large writes that fill generations, one
			// writer alone.
			load := []order{
				{Writers: 16, Bytes: 500, Acks: 400},
				{Writers: 4, Bytes: 64 << 10, Acks: 200},
				{Writers: 1, Bytes: 2000, Acks: 50},
			}[round%3]
			load.Acks += 37 * (round / 3) // another moment each time
			system := ext4
			if soak(t, 1) > 0 {
				system = fileSystems[(round+round/3)%3] // another one for each load
			}

			// Every other time the kernel writes the write-ahead log early, as it does
			// when somebody runs `sync`.
			o, server, sidecar := powerCut(t, system, load, round%2 == 1)
			if sidecar == nil {
				t.Fatal("the sidecar does not start after the power cut")
			}

			sidecar.emptied()
			a := o.wantAll(server)
			if s := sidecar.spoolStatus(); s["gaps"] != 0.0 || s["held"] != 0.0 || s["dead"] != 0.0 {
				t.Errorf("the spool says %v", s)
			}
			t.Logf("%s: %d acked, %d unsure, of which the spool misses %v",
				system.name, a.Acked, a.Unsure, sidecar.spoolStatus()["uncertain"])
		})
	}
}

// The same with a spool that does not sync must lose something: otherwise the test above
// would pass for any spool.
func TestAPowerCutIsSeenByTheOracleWhenNothingIsSynced(t *testing.T) {
	t.Parallel()
	load := order{Writers: 16, Bytes: 500, Acks: 400}
	o, server, sidecar := powerCut(t, ext4, load, false, "PROMPTSPOOL_UNSAFE_NO_SYNC=1")
	if sidecar != nil {
		sidecar.emptied()
	}

	a := o.verify(server)
	if a.Lost == 0 {
		t.Errorf("without syncs all %d acked writes are there; the harness sees no power cut", a.Acked)
	}

	t.Logf("%d acked, %d lost", a.Acked, a.Lost)
}

// powerCut loads a sidecar whose data is on an image and whose server is away, until
// enough was acked, and cuts its power in the middle of the load. Then it starts the
// server, and a sidecar on what was on the disk; it returns nil for a sidecar that does
// not start. With early, the write-ahead log is written before the spool syncs it.
func powerCut(t *testing.T, system fileSystem, load order, early bool, env ...string) (*oracle, *node, *node) {
	t.Helper()
	disk, upstream := newImageOf(t, system, t.TempDir(), imageMebibytes, true), freePort(t)
	sidecar := beginCrashing(t, filepath.Join(disk.mount, "data"), "127.0.0.1:0", upstream, env...)
	if !sidecar.takes() {
		t.Fatal("the sidecar does not start")
	}

	calm := func() {}
	if early {
		calm = writeEarly(t, filepath.Join(disk.mount, "data", "spool"))
	}
	o := startOracle(t, adminKey)
	o.load(sidecar, load.Writers, load.Bytes, 0)
	sidecar.eventually(
		func() bool { return o.count().Acked >= load.Acks },
		func() string { return fmt.Sprintf("the load does not proceed: %+v", o.count()) },
	)

	sidecar.freeze()
	calm()
	o.halt()

	after := disk.afterPowerCut()
	sidecar.kill()
	disk.detach()

	server := startPlainServer(t, upstream)
	sidecar = beginCrashing(t, filepath.Join(after.mount, "data"), "127.0.0.1:0", upstream)
	if !sidecar.takes() {
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
func (n *node) freeze() {
	n.t.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		n.t.Fatal(err)
	}
	threads := fmt.Sprintf("/proc/%d/task/*/stat", n.cmd.Process.Pid)

	n.eventually(func() bool {
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
