//go:build linux

package delivery

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"promptspool/cmd/promptspool/e2e/harness"
)

func TestAStopTakesWritesUntilNobodyCalls(t *testing.T) {
	t.Parallel()
	server := harness.StartPlainServer(t, harness.FreePort(t))
	sidecar := harness.StartSidecar(t, t.TempDir(), server.Addr)
	last := sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	if err := sidecar.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	sidecar.Eventually(
		func() bool { return strings.Contains(sidecar.Logged(), `"msg":"stopping"`) },
		func() string { return "the sidecar does not stop" },
	)

	for begun := time.Now(); time.Since(begun) < time.Second; {
		last = sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	}
	select {
	case <-sidecar.Exited:
	case <-time.After(10 * time.Second):
		t.Fatal("nobody calls, and the sidecar does not end")
	}
	if err := sidecar.Cmd.Wait(); err != nil {
		t.Errorf("the sidecar ended with %v", err)
	}
	server.Record(last, harness.Events(1))
}

func TestAStopWithTheServerAwaySaysWhatStays(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t), "--drain", "300ms")
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	sidecar.Stop() // with exit code 0

	wantLeft(t, sidecar, 1)
}

// wantLeft checks that a stopped sidecar logged what it left and where, and that it is all there
// at the next start.
func wantLeft(t *testing.T, sidecar *harness.Node, acked int) {
	t.Helper()
	log := sidecar.Logged()
	if !strings.Contains(log, "stopping with events that the server does not have yet") ||
		!strings.Contains(log, `"data":"`+sidecar.Data+`"}`) {
		t.Errorf("the log does not say what stays, and where:\n%s", log)
	}

	again := harness.StartSidecar(t, sidecar.Data, harness.FreePort(t))
	if n := again.Waiting(); n < acked {
		t.Errorf("%d writes were acked, and %d events wait after the next start", acked, n)
	}
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	sidecar := harness.StartSidecar(t, t.TempDir(), harness.FreePort(t), "--drain", "1h")
	sidecar.Track("/rest/track-request", harness.AdminKey, harness.Chat())
	term := func() {
		if err := sidecar.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}

	term()
	sidecar.Eventually(
		func() bool { return strings.Contains(sidecar.Logged(), `"msg":"stopping"`) },
		func() string { return "the sidecar does not stop" },
	)

	term()
	select {
	case <-sidecar.Exited:
	case <-time.After(20 * time.Second):
		t.Fatal("the sidecar goes on after the second signal")
	}

	_ = sidecar.Cmd.Wait()
	again := harness.StartSidecar(t, sidecar.Data, harness.FreePort(t))
	if n := again.SpoolStatus()["events"]; n != 1.0 {
		t.Errorf("after the second signal the spool holds %v events; want 1", n)
	}
}
